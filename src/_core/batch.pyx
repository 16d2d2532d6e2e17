# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Many jobs on their way into a store: from `Job` values, or from columns.

Owns that a batch has each id once. Columns become records straight away: no Python object is made
for a row, and what rows have in common is looked up once for each combination of codes.
"""

from array import array

cimport cython
from cpython.buffer cimport (
    PyBUF_CONTIG_RO, PyBUF_FORMAT, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer,
)
from cpython.number cimport PyIndex_Check
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XINCREF
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy

from pyresched._core.ids cimport KIND_HEAP, Column, Key, read_bytes
from pyresched._core.records cimport (
    VALIDATED, Kind, Name, Record, kind_of, name_equal, name_key, name_read, name_text, own_cold,
    record_drop, record_key, records_equal, records_new,
)
from pyresched._core.values cimport Gang, Requirements, whole_in
from pyresched._core.views cimport Job

from pyresched.errors import DuplicateId, InputError

cdef enum:
    FEW = 8                  # so many are compared with one another
    PARTS = 7                # of a kind
    TOGETHER = 256           # rows whose records stay in the cache until they are whole

cdef int64_t MOST_PRIORITY = 4294967295
cdef int64_t MOST_VALUES = 0x7FFFFFFF
cdef tuple SIGNED = (b"b", b"h", b"i", b"l", b"q")


@cython.final
@cython.no_gc
cdef class Batch:
    """Records, each of another job once `distinct` has passed."""

    def __dealloc__(self):
        cdef Py_ssize_t i
        if self.keeper is None:
            for i in range(self.count):
                record_drop(self.records[i])
        free(self.records)
        free(self.keys)

    cdef int room(self, Py_ssize_t count) except -1:
        self.records = <Record **> malloc(max(1, count) * sizeof(Record *))
        self.keys = <Key *> malloc(max(1, count) * sizeof(Key))
        if self.records == NULL or self.keys == NULL:
            raise MemoryError
        return 0

    cdef int read_keys(self, const Column *column) except -1:
        """Take the ids apart. Raises what an id raises that cannot be one."""
        cdef Py_ssize_t i
        if self.has_keys:
            return 0
        for i in range(self.count):
            record_key(column, self.records[i], &self.keys[i])
        self.has_keys = True
        return 0

    cdef int distinct(self) except -1:
        """Leave out what repeats; `read_keys` has passed. Raises DuplicateId for one id with
        different content."""
        cdef uint64_t *table
        cdef uint64_t entry
        cdef Py_ssize_t i, j, kept = 0, count = self.count
        cdef size_t at, mask = 16
        cdef uint32_t hash_
        if count <= FEW:
            for i in range(count):
                for j in range(kept):
                    if self.resolve(j, i):
                        break
                else:
                    self.keep(kept, i)
                    kept += 1
            self.cut(kept)
            return 0
        while mask < <size_t> count * 2:
            mask *= 2
        table = <uint64_t *> calloc(mask, sizeof(uint64_t))
        if table == NULL:
            raise MemoryError
        mask -= 1
        try:
            for i in range(count):
                hash_ = self.keys[i].hash
                at = hash_ & mask
                while table[at]:
                    entry = table[at]
                    if entry >> 32 == hash_ and self.resolve(<uint32_t> entry - 1, i):
                        break
                    at = (at + 1) & mask
                else:
                    self.keep(kept, i)
                    kept += 1
                    table[at] = <uint64_t> hash_ << 32 | <uint64_t> kept
        finally:
            free(table)
        self.cut(kept)
        return 0

    cdef void keep(self, Py_ssize_t kept, Py_ssize_t i) noexcept:
        """Let the record at *i* stand at *kept*; what stood there comes behind."""
        cdef Record *other = self.records[kept]
        if kept == i:
            return
        self.records[kept] = self.records[i]
        self.records[i] = other
        self.keys[kept] = self.keys[i]

    cdef void cut(self, Py_ssize_t kept) noexcept:
        """Leave out all from *kept* on."""
        cdef Py_ssize_t i, count = self.count
        self.count = kept
        if self.keeper is None:
            for i in range(kept, count):
                record_drop(self.records[i])

    cdef int resolve(self, Py_ssize_t kept, Py_ssize_t again) except -1:
        """Whether the record *again* is that of *kept* once more."""
        cdef Record *one = self.records[kept]
        cdef Record *other = self.records[again]
        if not name_equal(&one.id, one.id_kind, &other.id, other.id_kind):
            return False
        if not records_equal(one, other):
            raise DuplicateId(
                f"job {name_text(&one.id, one.id_kind)!r} is in one batch twice with different "
                "content")
        return True


cdef Batch batch_of_jobs(jobs):
    cdef Batch batch = Batch.__new__(Batch)
    cdef list given = list(jobs)
    cdef Py_ssize_t i
    batch.keeper = given
    for job in given:
        if type(job) is not Job:
            raise TypeError(f"a job is a Job, got {type(job).__name__}")
    batch.room(len(given))
    for i in range(len(given)):
        batch.records[i] = (<Job> given[i]).record
    batch.count = len(given)
    return batch


# --- columns -------------------------------------------------------------------------------------
#
# What users hold comes in many forms. Each is brought to one of a few here, by its own methods and
# without an import: one Arrow array instead of chunks, a list of str instead of NumPy's text.

cdef tuple ARROW_TEXTS = ("string", "large_string")
cdef dict ARROW_CODES = {"int8": "b", "int16": "h", "int32": "i", "int64": "q"}
cdef tuple TEXTS = ("queue", "job_set", "job_type")


cdef bint is_arrow(object values):
    return hasattr(values, "buffers") and hasattr(values, "offset")


cdef object one_array(object values, str name):
    """*values*, an Arrow column in one array, NumPy's text and objects as a list."""
    if hasattr(values, "combine_chunks") and hasattr(values, "chunks"):
        values = values.combine_chunks()
        if not is_arrow(values):
            raise InputError(f"{name}: the chunks do not fit one array; put them in batches")
        return values
    if hasattr(values, "tolist") and getattr(getattr(values, "dtype", None), "kind", None) in (
            "U", "O"):
        return values.tolist()
    return values


cdef int must_be_whole(object values, str name) except -1:
    """Raise InputError for an Arrow column with a null."""
    if values.null_count:
        row = values.is_valid().to_pylist().index(False)
        raise InputError(f"{name}[{row}] is null; each row needs a value")
    return 0


cdef object arrow_numbers(object values):
    """The numbers of an Arrow array of integers, as a buffer."""
    cdef str code = ARROW_CODES[str(values.type)]
    first = values.offset
    data = values.buffers()[1]
    if data is None:
        return array(code)
    return memoryview(data).cast(code)[first:first + len(values)]


cdef tuple arrow_codes(object values, str name):
    """Codes and what they stand for, of an Arrow column that is dictionary-encoded, or of text."""
    if str(values.type) in ARROW_TEXTS and name in TEXTS:
        values = values.dictionary_encode()
    if not hasattr(values, "indices"):
        raise InputError(
            f"{name}: an Arrow column of values by dictionary is needed, got {values.type}; "
            "dictionary_encode() it")
    indices = values.indices
    if str(indices.type) not in ARROW_CODES:
        raise InputError(f"{name}: codes are int8 to int64, got {indices.type}; cast them to int32")
    if name == "gang" and indices.null_count:
        indices = indices.fill_null(-1)
    must_be_whole(indices, name)
    meant = values.dictionary.to_pylist()
    if name == "pools":
        meant = [tuple(each) if isinstance(each, list) else each for each in meant]
    return arrow_numbers(indices), meant


cdef tuple coded(list rows, str name):
    """Codes and what they stand for, of one str (or NumPy's bytes) a row."""
    cdef dict known = {}
    cdef Py_ssize_t i
    codes = array("i", bytes(4 * len(rows)))
    for i, value in enumerate(rows):
        if type(value) is bytes:
            try:
                value = value.decode()
            except UnicodeDecodeError as error:
                raise InputError(f"{name}[{i}] is not UTF-8: {error.reason}") from None
        if type(value) is not str:
            raise TypeError(f"{name}[{i}] is a str, got {value!r}")
        codes[i] = known.setdefault(value, len(known))
    return codes, list(known)


@cython.final
@cython.no_gc
cdef class Texts:
    """A column of ids. Raises InputError and TypeError for what is none."""

    def __init__(self, values, str name="ids"):
        cdef Py_ssize_t most
        self.name = name
        values = one_array(values, name)
        if is_arrow(values):
            if str(values.type) not in ARROW_TEXTS:
                raise InputError(
                    f"{name}: an Arrow column of type string or large_string is needed, got "
                    f"{values.type}; cast it to string")
            must_be_whole(values, name)
            _, offsets, cells = values.buffers()
            self.first = values.offset
            self.count = len(values)
            self.wide = str(values.type) != "string"
            PyObject_GetBuffer(b"" if offsets is None else offsets, &self.offsets, PyBUF_CONTIG_RO)
            self.has_offsets = True
            PyObject_GetBuffer(b"" if cells is None else cells, &self.cells, PyBUF_CONTIG_RO)
            self.has_cells = True
            most = self.offsets.len // <Py_ssize_t> (sizeof(int64_t) if self.wide
                                                     else sizeof(int32_t))
            if self.count and not 0 <= self.first < most - self.count:
                raise InputError(
                    f"{name}: {self.count} rows from {self.first} on need more offsets than there "
                    "are")
            return
        if isinstance(values, (list, tuple)):
            self.strs = list(values)
            self.count = len(self.strs)
        elif PyObject_CheckBuffer(values):
            try:
                PyObject_GetBuffer(values, &self.cells, PyBUF_CONTIG_RO | PyBUF_FORMAT)
            except (ValueError, BufferError) as error:
                raise InputError(f"{name}: a contiguous buffer is needed: {error}") from None
            self.has_cells = True
            if self.cells.ndim != 1 or self.cells.format == NULL or not (
                    self.cells.format.endswith(b"s")):
                raise InputError(
                    f"{name}: text or bytes of fixed width are needed (NumPy 'S26'), got format "
                    f"{(<bytes> (self.cells.format or b'B')).decode()!r}")
            self.count = self.cells.len // self.cells.itemsize if self.cells.itemsize else 0
        else:
            raise TypeError(f"{name} are a list of str or a buffer, got {type(values).__name__}")

    def __dealloc__(self):
        if self.has_cells:
            PyBuffer_Release(&self.cells)
        if self.has_offsets:
            PyBuffer_Release(&self.offsets)

    cdef const uint8_t *cell(self, Py_ssize_t i, size_t *size) noexcept nogil:
        """The bytes of row *i*, where there are no strs. None where the offsets lead elsewhere:
        nobody has checked them, and another thread may write there now."""
        cdef const uint8_t *text = <const uint8_t *> self.cells.buf
        cdef int64_t span[2]
        cdef int32_t narrow[2]
        if self.has_offsets:
            if self.wide:
                memcpy(span, <const int64_t *> self.offsets.buf + self.first + i, sizeof(span))
            else:
                memcpy(narrow, <const int32_t *> self.offsets.buf + self.first + i, sizeof(narrow))
                span[0] = narrow[0]
                span[1] = narrow[1]
            size[0] = 0
            if not 0 <= span[0] <= span[1] <= self.cells.len:
                return text
            size[0] = span[1] - span[0]
            return text + span[0]
        text += i * self.cells.itemsize
        size[0] = self.cells.itemsize
        while size[0] and text[size[0] - 1] == 0:  # padding
            size[0] -= 1
        return text

    cdef Py_ssize_t keys(self, const Column *column, Key *keys) noexcept nogil:
        cdef const uint8_t *text
        cdef size_t size = 0
        cdef Py_ssize_t i
        for i in range(self.count):
            text = self.cell(i, &size)
            if not read_bytes(column, text, size, &keys[i]):
                return i
        return self.count

    cdef int read(self, const Column *column, Py_ssize_t i, Name *name, uint8_t *kind,
                  Key *key) except -1:
        """The form of the id in row *i*, a hold taken, and its key."""
        cdef const uint8_t *text
        cdef size_t size = 0
        if self.strs is None:
            text = self.cell(i, &size)
            if read_bytes(column, text, size, key) and key.kind != KIND_HEAP:
                name.hi = key.hi
                name.lo = key.lo
                kind[0] = key.kind
                return 0
            id_ = decoded(self.name, i, text, size)
        else:
            id_ = self.strs[i]
            if type(id_) is not str:
                raise TypeError(f"{self.name}[{i}] is a str, got {id_!r}")
            if not id_:
                raise InputError(f"{self.name}[{i}] must not be empty")
        name_read(<str> id_, name, kind)
        return name_key(column, name, kind[0], key)


cdef str decoded(str name, Py_ssize_t i, const uint8_t *text, size_t size):
    if size == 0:
        raise InputError(f"{name}[{i}] must not be empty")
    try:
        return (<const char *> text)[:size].decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{name}[{i}] is not UTF-8: {error.reason}") from None


cdef object packed(str code, values, str name):
    """The list *values* as an array. Raises InputError that names what does not go in."""
    try:
        return array(code, values)
    except (TypeError, OverflowError):
        for i, value in enumerate(values):
            try:
                array(code, (value,))
            except (TypeError, OverflowError) as error:
                raise InputError(f"{name}[{i}]: {value!r} cannot be: {error}") from None
        raise


@cython.final
@cython.no_gc
cdef class Numbers:
    """A column of int64, or one number for all rows."""

    def __init__(self, values, str name, Py_ssize_t count, str beside="ids"):
        if values is None:
            raise InputError(f"{name} is an int or an int64 buffer, got None")
        # A scalar of NumPy is a buffer too, and its arrays have `__index__`.
        if PyIndex_Check(values) and getattr(values, "ndim", 0) == 0:
            self.one = whole_in(values, name)
            self.is_one = True
            return
        values = one_array(values, name)
        if isinstance(values, (list, tuple)):
            values = packed("q", values, name)
        elif is_arrow(values):
            if str(values.type) != "int64":
                raise InputError(
                    f"{name}: an Arrow column of type int64 is needed, got {values.type}; cast it")
            must_be_whole(values, name)
            values = arrow_numbers(values)
        try:
            self.many = values
        except (ValueError, TypeError, BufferError) as error:
            raise InputError(f"{name}: a contiguous int64 buffer is needed: {error}") from None
        if self.many.shape[0] != count:
            raise InputError(f"{name} has {self.many.shape[0]} rows, {beside} have {count}")

    cdef int64_t at(self, Py_ssize_t i) noexcept:
        return self.one if self.is_one else self.many[i]


@cython.final
@cython.no_gc
cdef class Coded:
    """A column of values by codes, or one value for all rows (code 0)."""

    def __init__(self, column, str name, Py_ssize_t count):
        self.name = name
        column = one_array(column, name)
        if is_arrow(column):
            column = arrow_codes(column, name)
        elif name in TEXTS and type(column) is not bytes:
            if PyObject_CheckBuffer(column) and hasattr(column, "tolist"):
                column = column.tolist()
            if isinstance(column, list):
                column = coded(column, name)
        if not (isinstance(column, tuple) and len(column) == 2 and not isinstance(column[0], str)
                and (isinstance(column[0], list) or PyObject_CheckBuffer(column[0]))):
            self.values = [column]
            return
        codes, values = column
        try:
            self.values = values.tolist() if hasattr(values, "tolist") else list(values)
        except TypeError:
            raise TypeError(
                f"{name}: codes go with the list of what they stand for, got {values!r}") from None
        if isinstance(codes, list):
            if codes and not PyIndex_Check(codes[0]) and PyObject_CheckBuffer(values):
                raise InputError(
                    f"{name}: a pair is the codes and then what they stand for; these are swapped")
            codes = packed("i", codes, name)
        try:
            PyObject_GetBuffer(codes, &self.codes, PyBUF_CONTIG_RO | PyBUF_FORMAT)
        except (ValueError, BufferError) as error:
            raise InputError(f"{name}: codes are a contiguous buffer: {error}") from None
        self.has_codes = True
        if self.codes.ndim != 1 or self.codes.format == NULL or self.codes.itemsize not in (
                1, 2, 4, 8) or (<bytes> self.codes.format).strip(b"<=@") not in SIGNED:
            raise InputError(
                f"{name}: codes (first, then their values) are int8 to int64, got format "
                f"{(<bytes> (self.codes.format or b'B')).decode()!r}")
        if self.codes.shape[0] != count:
            raise InputError(f"{name} has {self.codes.shape[0]} rows, ids have {count}")
        self.lowest = -1 if name == "gang" else 0
        self.limit = min(<int64_t> len(self.values), MOST_VALUES)

    def __dealloc__(self):
        if self.has_codes:
            PyBuffer_Release(&self.codes)

    cdef int32_t at(self, Py_ssize_t i) except -2:
        """The code of row *i*, looked at each time: the buffer is somebody else's, who may have
        written there meanwhile."""
        cdef int64_t code
        if not self.has_codes:
            return 0
        code = self.read(i)
        if not self.lowest <= code < self.limit:
            raise InputError(
                f"{self.name}[{i}]: code {code} is not from {self.lowest} to {self.limit - 1}")
        return <int32_t> code

    cdef int64_t read(self, Py_ssize_t i) noexcept:
        cdef const char *place = <const char *> self.codes.buf + i * self.codes.itemsize
        cdef int32_t word = 0
        cdef int64_t wide = 0
        cdef int16_t half = 0
        if self.codes.itemsize == 4:
            memcpy(&word, place, 4)
            return word
        if self.codes.itemsize == 8:
            memcpy(&wide, place, 8)
            return wide
        if self.codes.itemsize == 2:
            memcpy(&half, place, 2)
            return half
        return (<const signed char *> place)[0]


# What the parts of a kind are by code, and the kind; NULL: an open place.
cdef struct KindCell:
    int32_t codes[PARTS]
    PyObject *kind


cdef class Kinds:
    """The kinds of a batch by the codes of their parts: a table of open places, half full."""

    cdef list columns          # Coded: queue, job set, requirements, pools, type, policy, rules
    cdef list kept             # every kind met, so that the borrowed pointers stay good
    cdef KindCell *table
    cdef size_t mask
    cdef KindCell last         # that of the row before

    def __init__(self, list columns):
        self.columns = columns
        self.kept = []
        self.widen(64)

    def __dealloc__(self):
        free(self.table)

    cdef int widen(self, size_t places) except -1:
        cdef KindCell *old = self.table
        cdef KindCell *table = <KindCell *> calloc(places, sizeof(KindCell))
        cdef size_t i, count = self.mask + 1
        if table == NULL:
            raise MemoryError
        self.table = table
        self.mask = places - 1
        if old != NULL:
            for i in range(count):
                if old[i].kind != NULL:
                    self.place(old[i].codes)[0] = old[i]
            free(old)
        return 0

    cdef KindCell *place(self, const int32_t *codes) noexcept:
        """Where the kind of *codes* is, or belongs."""
        cdef uint64_t mixed = 0
        cdef size_t at
        cdef int i
        for i in range(PARTS):
            mixed = (mixed ^ <uint32_t> codes[i]) * <uint64_t> 0x9E3779B97F4A7C15
        at = <size_t> (mixed >> 32) & self.mask
        while self.table[at].kind != NULL:
            if memcmp(self.table[at].codes, codes, sizeof(self.last.codes)) == 0:
                break
            at = (at + 1) & self.mask
        return self.table + at

    cdef PyObject *of_row(self, Py_ssize_t row) except NULL:
        """Borrowed: kept as long as this is."""
        cdef int32_t codes[PARTS]
        cdef KindCell *cell
        cdef int i
        cdef Kind kind
        for i in range(PARTS):
            codes[i] = (<Coded> self.columns[i]).at(row)
        if self.last.kind != NULL and memcmp(codes, self.last.codes, sizeof(codes)) == 0:
            return self.last.kind
        cell = self.place(codes)
        if cell.kind == NULL:
            kind = self.found([(<Coded> self.columns[i]).values[codes[i]] for i in range(PARTS)])
            self.kept.append(kind)
            if 2 * <size_t> len(self.kept) > self.mask:
                self.widen(2 * (self.mask + 1))
            cell = self.place(codes)
            memcpy(cell.codes, codes, sizeof(codes))
            cell.kind = <PyObject *> kind
        self.last = cell[0]
        return cell.kind

    cdef Kind found(self, list parts):
        """The kind of these parts, each checked."""
        queue, job_set, requirements, pools, job_type, policy, rules = parts
        for name, value in (("queue", queue), ("job_set", job_set), ("job_type", job_type)):
            if type(value) is not str:
                raise TypeError(f"{name} is a str, got {value!r}")
        if not queue:
            raise InputError("queue: a job needs a queue, got ''")
        if type(requirements) is not Requirements:
            raise TypeError(f"requirements is a Requirements, got {requirements!r}")
        if type(pools) is not tuple:
            raise TypeError(f"pools is a tuple, got {pools!r}")
        for pool in pools:
            if type(pool) is not str:
                raise TypeError(f"a pool is a str, got {pool!r}")
        return kind_of(
            <str> queue, <str> job_set, <Requirements> requirements, <tuple> pools, <str> job_type,
            policy, rules)


@cython.final
@cython.no_gc
cdef class Columns:
    """What `Txn.upsert_columns` was given, each column looked at; see there."""

    cdef Texts ids
    cdef Numbers submitted
    cdef Numbers priorities
    cdef Coded gangs
    cdef Kinds kinds
    cdef list payloads
    cdef uint8_t flags

    cdef Batch batch(self, const Column *column):
        """The records of all rows."""
        cdef Batch batch = Batch.__new__(Batch)
        cdef Py_ssize_t i, end, count = self.ids.count
        batch.room(count)
        for i in range(0, count, TOGETHER):
            end = min(count, i + TOGETHER)
            records_new(batch.records + i, end - i)
            batch.count = end
            self.read_rows(column, batch, i, end)
        batch.has_keys = True
        return batch

    cdef int read_rows(self, const Column *column, Batch batch, Py_ssize_t first,
                       Py_ssize_t end) except -1:
        cdef Record *record
        cdef PyObject *kind
        cdef int64_t number
        cdef Py_ssize_t i
        for i in range(first, end):
            record = batch.records[i]
            self.ids.read(column, i, &record.id, &record.id_kind, &batch.keys[i])
            number = self.priorities.at(i)
            if not 0 <= number <= MOST_PRIORITY:
                raise InputError(f"priority[{i}] must be from 0 to {MOST_PRIORITY}, got {number}")
            record.priority = <uint32_t> number
            record.submitted_at = self.submitted.at(i)
            record.version = 1
            record.flags = self.flags
        for i in range(first, end):
            kind = self.kinds.of_row(i)
            Py_XINCREF(kind)
            batch.records[i].kind = kind
        if self.gangs.has_codes or self.gangs.values[0] is not None:
            for i in range(first, end):
                self.read_gang(batch.records[i], i)
        if self.payloads is not None:
            for i in range(first, end):
                payload = self.payloads[i]
                if payload is not None:
                    Py_INCREF(payload)
                    batch.records[i].payload = <PyObject *> payload
        return 0

    cdef int read_gang(self, Record *record, Py_ssize_t i) except -1:
        cdef Py_ssize_t code = self.gangs.at(i)
        if code < 0:
            return 0
        gang = self.gangs.values[code]
        if gang is not None:
            own_cold(record)
            Py_INCREF(gang)
            record.cold.gang = <PyObject *> gang
        return 0


cdef Batch batch_of_columns(const Column *column, ids, submitted_at, queue, requirements, priority,
                            gang, job_set, pools, job_type, policy, rules, validated, payload):
    cdef Columns columns = Columns.__new__(Columns)
    cdef Texts texts = Texts(ids)
    cdef Py_ssize_t count = texts.count
    columns.ids = texts
    columns.submitted = Numbers(submitted_at, "submitted_at", count)
    columns.priorities = Numbers(priority, "priority", count)
    columns.gangs = Coded(gang, "gang", count)
    if payload is not None and not hasattr(payload, "__iter__"):
        raise TypeError(f"payload is None or a list, one for each row; got {payload!r}")
    columns.payloads = None if payload is None else list(payload)
    columns.kinds = Kinds([
        Coded(queue, "queue", count), Coded(job_set, "job_set", count),
        Coded(requirements, "requirements", count), Coded(pools, "pools", count),
        Coded(job_type, "job_type", count), Coded(policy, "policy", count),
        Coded(rules, "rules", count),
    ])
    for each in columns.gangs.values:
        if each is not None and type(each) is not Gang:
            raise TypeError(f"gang is a Gang or None, got {each!r}")
    if type(validated) is not bool:
        raise TypeError(f"validated is one bool for all rows, got {type(validated).__name__}")
    columns.flags = VALIDATED if validated else 0
    if payload is not None and len(columns.payloads) != count:
        raise InputError(f"payload has {len(columns.payloads)} rows, ids have {count}")
    return columns.batch(column)
