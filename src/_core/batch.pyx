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
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from pyresched._core.bits cimport whole
from pyresched._core.ids cimport KIND_HEAP, Column, Key, read_bytes
from pyresched._core.records cimport (
    VALIDATED, Kind, Name, Record, kind_of, name_equal, name_read, name_text, own_cold, record_drop,
    record_key, record_new, records_equal,
)
from pyresched._core.values cimport Gang, Requirements
from pyresched._core.views cimport Job

from pyresched.errors import DuplicateId, InputError

cdef enum:
    FEW = 8                  # so many are compared with one another
    MOST_COMBINATIONS = 1 << 22

cdef int64_t MOST_PRIORITY = 4294967295


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
        free(self.hashes)

    cdef int room(self, Py_ssize_t count) except -1:
        self.records = <Record **> malloc(max(1, count) * sizeof(Record *))
        self.hashes = <uint32_t *> malloc(max(1, count) * sizeof(uint32_t))
        if self.records == NULL or self.hashes == NULL:
            raise MemoryError
        return 0

    cdef int key(self, const Column *column, Py_ssize_t i, Key *key) except -1:
        cdef const Record *record = self.records[i]
        if record.id_kind == KIND_HEAP:
            return record_key(column, record, key)
        key.kind = record.id_kind
        key.hi = record.id.hi
        key.lo = record.id.lo
        key.hash = self.hashes[i]
        return 0

    cdef int distinct(self, const Column *column) except -1:
        """Leave out what repeats. Raises DuplicateId for one id with different content, and what
        an id raises that cannot be one."""
        cdef uint64_t *table
        cdef uint64_t entry
        cdef Py_ssize_t i, j, kept = 0, count = self.count
        cdef size_t at, mask = 16
        cdef Key key
        if count <= FEW:
            for i in range(count):
                record_key(column, self.records[i], &key)
                self.hashes[i] = key.hash
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
                record_key(column, self.records[i], &key)
                self.hashes[i] = key.hash
                at = key.hash & mask
                while table[at]:
                    entry = table[at]
                    if entry >> 32 == key.hash and self.resolve(<uint32_t> entry - 1, i):
                        break
                    at = (at + 1) & mask
                else:
                    self.keep(kept, i)
                    kept += 1
                    table[at] = <uint64_t> key.hash << 32 | <uint64_t> kept
        finally:
            free(table)
        self.cut(kept)
        return 0

    cdef void keep(self, Py_ssize_t kept, Py_ssize_t i) noexcept:
        """Let the record at *i* stand at *kept*; what stood there comes behind."""
        cdef Record *other = self.records[kept]
        self.records[kept] = self.records[i]
        self.records[i] = other
        self.hashes[kept] = self.hashes[i]

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


@cython.final
@cython.no_gc
cdef class Texts:
    """A column of ids. Raises InputError and TypeError for what is none."""

    def __init__(self, values):
        cdef Py_ssize_t most
        if isinstance(values, (list, tuple)):
            self.strs = list(values)
            self.count = len(self.strs)
        elif hasattr(values, "buffers") and hasattr(values, "offset"):
            if str(values.type) != "string" or values.null_count:
                raise InputError(
                    f"ids: an Arrow column of type string without nulls is needed, got "
                    f"{values.type} with {values.null_count} nulls")
            _, offsets, cells = values.buffers()
            self.first = values.offset
            self.count = len(values)
            PyObject_GetBuffer(b"" if offsets is None else offsets, &self.offsets, PyBUF_CONTIG_RO)
            self.has_offsets = True
            PyObject_GetBuffer(b"" if cells is None else cells, &self.cells, PyBUF_CONTIG_RO)
            self.has_cells = True
            most = self.offsets.len // <Py_ssize_t> sizeof(int32_t)
            if self.count and not 0 <= self.first < most - self.count:
                raise InputError(
                    f"ids: {self.count} rows from {self.first} on need more offsets than there are")
        elif PyObject_CheckBuffer(values):
            try:
                PyObject_GetBuffer(values, &self.cells, PyBUF_CONTIG_RO | PyBUF_FORMAT)
            except (ValueError, BufferError) as error:
                raise InputError(f"ids: a contiguous buffer is needed: {error}") from None
            self.has_cells = True
            if self.cells.ndim != 1 or self.cells.format == NULL or not (
                    self.cells.format.endswith(b"s")):
                raise InputError(
                    "ids: a buffer of bytes of fixed width is needed (NumPy 'S26'), got format "
                    f"{(<bytes> (self.cells.format or b'B')).decode()!r}")
            self.count = self.cells.len // self.cells.itemsize if self.cells.itemsize else 0
        else:
            raise TypeError(f"ids are a list of str or a buffer, got {type(values).__name__}")

    def __dealloc__(self):
        if self.has_cells:
            PyBuffer_Release(&self.cells)
        if self.has_offsets:
            PyBuffer_Release(&self.offsets)

    cdef const uint8_t *cell(self, Py_ssize_t i, size_t *size) noexcept nogil:
        """The bytes of row *i*, where there are no strs. None where the offsets lead elsewhere:
        nobody has checked them, and another thread may write there now."""
        cdef const uint8_t *text = <const uint8_t *> self.cells.buf
        cdef int32_t span[2]
        if self.has_offsets:
            memcpy(span, <const int32_t *> self.offsets.buf + self.first + i, sizeof(span))
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

    cdef int read(self, const Column *column, Py_ssize_t i, Name *name, uint8_t *kind) except -1:
        """The form of the id in row *i*, a hold taken."""
        cdef Key key
        cdef const uint8_t *text
        cdef size_t size = 0
        if self.strs is not None:
            id_ = self.strs[i]
            if type(id_) is not str:
                raise TypeError(f"ids[{i}] is a str, got {id_!r}")
            if not id_:
                raise InputError(f"ids[{i}] must not be empty")
            return name_read(<str> id_, name, kind)
        text = self.cell(i, &size)
        if read_bytes(column, text, size, &key) and key.kind != KIND_HEAP:
            name.hi = key.hi
            name.lo = key.lo
            kind[0] = key.kind
            return 0
        if size == 0:
            raise InputError(f"ids[{i}] must not be empty")
        try:
            whole_text = (<const char *> text)[:size].decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"ids[{i}] is not UTF-8: {error.reason}") from None
        return name_read(<str> whole_text, name, kind)


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

    cdef const int64_t[::1] many
    cdef int64_t one
    cdef bint is_one

    def __init__(self, values, str name, Py_ssize_t count):
        if values is None:
            raise InputError(f"{name} is an int or an int64 buffer, got None")
        if isinstance(values, int):
            self.one = whole(values)
            self.is_one = True
            return
        if isinstance(values, (list, tuple)):
            values = packed("q", values, name)
        elif hasattr(values, "buffers") and hasattr(values, "offset"):
            if str(values.type) != "int64" or values.null_count:
                raise InputError(f"{name}: an Arrow column of type int64 without nulls is needed")
            first = values.offset
            values = memoryview(values.buffers()[1]).cast("q")[first:first + len(values)]
        try:
            self.many = values
        except (ValueError, TypeError, BufferError) as error:
            raise InputError(f"{name}: a contiguous int64 buffer is needed: {error}") from None
        if self.many.shape[0] != count:
            raise InputError(f"{name} has {self.many.shape[0]} rows, ids have {count}")

    cdef int64_t at(self, Py_ssize_t i) noexcept:
        return self.one if self.is_one else self.many[i]


@cython.final
@cython.no_gc
cdef class Coded:
    """A column of values by codes, or one value for all rows (code 0)."""

    cdef const int32_t[::1] codes
    cdef bint is_one
    cdef int lowest
    cdef str name
    cdef list values

    def __init__(self, column, str name, Py_ssize_t count):
        cdef Py_ssize_t i
        self.name = name
        if not (isinstance(column, tuple) and len(column) == 2 and not isinstance(column[0], str)
                and (isinstance(column[0], list) or PyObject_CheckBuffer(column[0]))):
            self.is_one = True
            self.values = [column]
            return
        codes, values = column
        try:
            self.values = list(values)
        except TypeError:
            raise TypeError(
                f"{name}: codes go with the list of what they stand for, got {values!r}") from None
        if isinstance(codes, list):
            codes = packed("i", codes, name)
        try:
            self.codes = codes
        except (ValueError, TypeError, BufferError) as error:
            raise InputError(f"{name}: codes are a contiguous int32 buffer: {error}") from None
        if self.codes.shape[0] != count:
            raise InputError(f"{name} has {self.codes.shape[0]} rows, ids have {count}")
        self.lowest = -1 if name == "gang" else 0
        for i in range(count):
            self.at(i)

    cdef Py_ssize_t at(self, Py_ssize_t i) except -2:
        """The code of row *i*, looked at each time: the buffer is somebody else's, who may have
        written there meanwhile."""
        cdef int32_t code = 0
        if self.is_one:
            return 0
        memcpy(&code, &self.codes[i], sizeof(code))
        if not self.lowest <= code < len(self.values):
            raise InputError(
                f"{self.name}[{i}]: code {code} is not from {self.lowest} to "
                f"{len(self.values) - 1}")
        return code


cdef class Kinds:
    """The kinds of a batch by the codes of their parts."""

    cdef list columns          # Coded: queue, job set, requirements, pools, type, policy
    cdef list kept             # every kind met, so that the borrowed pointers stay good
    cdef PyObject **known      # by combination; NULL when there are too many
    cdef size_t[6] strides

    def __init__(self, list columns):
        cdef size_t combinations = 1
        cdef int i
        self.columns = columns
        self.kept = []
        for i in range(6):
            self.strides[i] = combinations
            combinations *= max(1, len((<Coded> columns[i]).values))
            if combinations > MOST_COMBINATIONS:
                return
        self.known = <PyObject **> calloc(combinations, sizeof(PyObject *))
        if self.known == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.known)

    cdef Kind of_row(self, Py_ssize_t row):
        cdef size_t at = 0
        cdef Py_ssize_t codes[6]
        cdef int i
        cdef Kind kind
        for i in range(6):
            codes[i] = (<Coded> self.columns[i]).at(row)
        if self.known != NULL:
            for i in range(6):
                at += self.strides[i] * codes[i]
            if self.known[at] != NULL:
                return <Kind> self.known[at]
        kind = self.found([(<Coded> self.columns[i]).values[codes[i]] for i in range(6)])
        if self.known != NULL:
            self.kept.append(kind)
            self.known[at] = <PyObject *> kind
        return kind

    cdef Kind found(self, list parts):
        """The kind of these parts, each checked."""
        queue, job_set, requirements, pools, job_type, policy = parts
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
            policy)


cdef Batch batch_of_columns(const Column *column, ids, submitted_at, queue, requirements, priority,
                            gang, job_set, pools, job_type, policy, validated, payload):
    cdef Texts texts = Texts(ids)
    cdef Py_ssize_t i, code, count = texts.count
    cdef Numbers submitted = Numbers(submitted_at, "submitted_at", count)
    cdef Numbers priorities = Numbers(priority, "priority", count)
    cdef Coded gangs = Coded(gang, "gang", count)
    cdef list payloads = None if payload is None else list(payload)
    cdef Batch batch = Batch.__new__(Batch)
    cdef Record *record
    cdef Kind kind
    cdef int64_t number
    cdef Kinds kinds = Kinds([
        Coded(queue, "queue", count), Coded(job_set, "job_set", count),
        Coded(requirements, "requirements", count), Coded(pools, "pools", count),
        Coded(job_type, "job_type", count), Coded(policy, "policy", count),
    ])
    for each in gangs.values:
        if each is not None and type(each) is not Gang:
            raise TypeError(f"gang is a Gang or None, got {each!r}")
    if type(validated) is not bool:
        raise TypeError(f"validated is one bool for all rows, got {type(validated).__name__}")
    if payloads is not None and len(payloads) != count:
        raise InputError(f"payload has {len(payloads)} rows, ids have {count}")
    batch.room(count)
    for i in range(count):
        record = record_new()
        batch.records[i] = record
        batch.count = i + 1
        texts.read(column, i, &record.id, &record.id_kind)
        kind = kinds.of_row(i)
        Py_INCREF(kind)
        record.kind = <PyObject *> kind
        number = priorities.at(i)
        if not 0 <= number <= MOST_PRIORITY:
            raise InputError(f"priority[{i}] must be from 0 to {MOST_PRIORITY}, got {number}")
        record.priority = <uint32_t> number
        record.submitted_at = submitted.at(i)
        record.version = 1
        record.flags = VALIDATED if validated else 0
        code = gangs.at(i)
        if code >= 0 and gangs.values[code] is not None:
            each = gangs.values[code]
            own_cold(record)
            Py_INCREF(each)
            record.cold.gang = <PyObject *> each
        if payloads is not None and payloads[i] is not None:
            each = payloads[i]
            Py_INCREF(each)
            record.payload = <PyObject *> each
    return batch
