# cython: binding=False, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Persistent arrays of rows: 64 rows a page, pages under directories of 32.

Owns its nodes through the edit that made them (see versions). A write copies the page and the
directories above it once in an edit; a reader of a pinned version takes no lock.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from pyresched._core.bits cimport prefetch
from pyresched._core.versions cimport (
    EditLog, Meter, Node, drop_node, make_room, new_node, out_of_memory, release,
)

#      Paged {root, height 2}
#        |
#   Directory [32] ---- Directory [32] ---- Page: header, 64 rows
#
# Row r lies at r & 63 of page r >> 6; a directory at level l (the lowest is 1) is indexed by
# the five bits of r from 6 + 5 * (l - 1).

cdef struct Directory:
    uint64_t stamp
    uint32_t fresh
    uint32_t level
    void *child[RADIX_WAYS]

cdef struct Page:
    uint64_t stamp
    uint32_t fresh
    uint32_t unused


cdef inline char *rows_of(void *page) noexcept nogil:
    return <char *> page + sizeof(Page)


cdef inline size_t page_size(const Pages *pages) noexcept nogil:
    return sizeof(Page) + <size_t> PAGE_ROWS * pages.row_size


cdef inline uint32_t way(uint32_t row, uint32_t level) noexcept nogil:
    return (row >> (PAGE_BITS + RADIX_BITS * (level - 1))) & (RADIX_WAYS - 1)


cdef inline bint reaches(uint32_t height, uint32_t row) noexcept nogil:
    """Whether directories of this height have a place for the row."""
    cdef uint32_t bits = PAGE_BITS + RADIX_BITS * height
    return bits >= 32 or row >> bits == 0


cdef void reclaim_page(void *owner, uint64_t what) noexcept nogil:
    cdef Pages *pages = <Pages *> owner
    release(&pages.meter, <void *> <size_t> what, page_size(pages))


cdef void reclaim_directory(void *owner, uint64_t what) noexcept nogil:
    release(&(<Pages *> owner).meter, <void *> <size_t> what, sizeof(Directory))


cdef void pages_init(Pages *pages, uint32_t row_size) noexcept nogil:
    assert row_size % 8 == 0, "rows are whole words"
    memset(pages, 0, sizeof(Pages))
    pages.row_size = row_size


cdef const void *page_read(const Pages *pages, const Paged *array, uint32_t row) noexcept nogil:
    cdef void *node = array.root
    cdef uint32_t level = array.height
    if row >= array.length:
        return NULL
    while level and node != NULL:
        node = (<Directory *> node).child[way(row, level)]
        level -= 1
    if node == NULL:
        return NULL
    return rows_of(node) + <size_t> (row & (PAGE_ROWS - 1)) * pages.row_size


cdef void pages_fetch(const Pages *pages, const Paged *array, const uint32_t *rows,
                      uint32_t count, const void **at) noexcept nogil:
    cdef uint32_t i
    for i in range(count):
        at[i] = page_read(pages, array, rows[i])
        prefetch(at[i])


cdef Directory *own_directory(Pages *pages, EditLog *log, void **place,
                              uint32_t level) except NULL nogil:
    """The directory at *place*, the edit's own: made, copied or as it is."""
    cdef Directory *old = <Directory *> place[0]
    cdef Directory *own
    if old != NULL and old.stamp == log.stamp:
        return old
    own = <Directory *> new_node(log, &pages.meter, reclaim_directory, pages, sizeof(Directory))
    if own == NULL:
        out_of_memory()
        return NULL
    own.level = level
    if old == NULL:
        memset(own.child, 0, sizeof(own.child))
    else:
        memcpy(own.child, old.child, sizeof(own.child))
        drop_node(log, reclaim_directory, pages, old)
    place[0] = own
    return own


cdef void *page_write(Pages *pages, Paged *array, EditLog *log, uint32_t row) except NULL nogil:
    cdef Directory *directory
    cdef void **place = &array.root
    cdef void *old
    cdef void *page
    cdef uint32_t level
    make_room(log, 16)
    while not reaches(array.height, row):
        # An empty root needs no directory above it to become taller.
        if array.root != NULL:
            page = NULL
            directory = own_directory(pages, log, &page, array.height + 1)
            directory.child[0] = array.root
            array.root = directory
        array.height += 1
    level = array.height
    while level:
        directory = own_directory(pages, log, place, level)
        place = &directory.child[way(row, level)]
        level -= 1
    old = place[0]
    page = old
    if old == NULL or (<Node *> old).stamp != log.stamp:
        page = new_node(log, &pages.meter, reclaim_page, pages, page_size(pages))
        if page == NULL:
            out_of_memory()
            return NULL
        if old == NULL:
            memset(rows_of(page), 0, <size_t> PAGE_ROWS * pages.row_size)
        else:
            memcpy(rows_of(page), rows_of(old), <size_t> PAGE_ROWS * pages.row_size)
            drop_node(log, reclaim_page, pages, old)
        place[0] = page
    if row >= array.length:
        array.length = <uint64_t> row + 1
    return rows_of(page) + <size_t> (row & (PAGE_ROWS - 1)) * pages.row_size


cdef int diff_page(const Pages *pages, void *old, void *new, uint32_t first, RowVisitor visit,
                   void *context) except -1:
    cdef uint32_t i
    cdef const char *before
    cdef const char *after
    for i in range(PAGE_ROWS):
        before = NULL if old == NULL else rows_of(old) + <size_t> i * pages.row_size
        after = NULL if new == NULL else rows_of(new) + <size_t> i * pages.row_size
        if before == NULL or after == NULL or memcmp(before, after, pages.row_size) != 0:
            visit(context, first + i, before, after)
    return 0


cdef int diff_node(const Pages *pages, void *old, uint32_t old_height, void *new,
                   uint32_t new_height, uint32_t first, RowVisitor visit,
                   void *context) except -1:
    """Two subtrees that begin at row *first*; the lower one stands for the taller one's first
    child."""
    cdef uint32_t i, height = max(old_height, new_height)
    cdef void *before
    cdef void *after
    if old == new and old_height == new_height:
        return 0
    if old == NULL and new == NULL:
        return 0
    if height == 0:
        return diff_page(pages, old, new, first, visit, context)
    for i in range(RADIX_WAYS):
        if old_height == height:
            before = NULL if old == NULL else (<Directory *> old).child[i]
        else:
            before = old if i == 0 else NULL
        if new_height == height:
            after = NULL if new == NULL else (<Directory *> new).child[i]
        else:
            after = new if i == 0 else NULL
        if before == NULL and after == NULL:
            continue
        diff_node(
            pages,
            before, old_height - 1 if old_height == height else old_height,
            after, new_height - 1 if new_height == height else new_height,
            first + (i << (PAGE_BITS + RADIX_BITS * (height - 1))), visit, context,
        )
    return 0


cdef int pages_diff(const Pages *pages, const Paged *old, const Paged *new,
                    RowVisitor visit, void *context) except -1:
    return diff_node(pages, old.root, old.height, new.root, new.height, 0, visit, context)


cdef void measure_node(const Pages *pages, void *node, uint32_t height,
                       Meter *meter) noexcept nogil:
    cdef uint32_t i
    if node == NULL:
        return
    meter.nodes += 1
    if height == 0:
        meter.bytes += page_size(pages)
        return
    meter.bytes += sizeof(Directory)
    for i in range(RADIX_WAYS):
        measure_node(pages, (<Directory *> node).child[i], height - 1, meter)


cdef void pages_measure(const Pages *pages, const Paged *array, Meter *meter) noexcept nogil:
    measure_node(pages, array.root, array.height, meter)


cdef void free_node(Pages *pages, void *node, uint32_t height) noexcept nogil:
    cdef uint32_t i
    if node == NULL:
        return
    if height == 0:
        reclaim_page(pages, <uint64_t> <size_t> node)
        return
    for i in range(RADIX_WAYS):
        free_node(pages, (<Directory *> node).child[i], height - 1)
    reclaim_directory(pages, <uint64_t> <size_t> node)


cdef void pages_free(Pages *pages, Paged *array) noexcept nogil:
    free_node(pages, array.root, array.height)
    memset(array, 0, sizeof(Paged))


cdef int each_row(const Pages *pages, void *node, uint32_t height, uint32_t first, EachRow visit,
                  void *context) except -1:
    cdef uint32_t i
    if node == NULL:
        return 0
    if height == 0:
        for i in range(PAGE_ROWS):
            visit(context, first + i, rows_of(node) + <size_t> i * pages.row_size)
        return 0
    for i in range(RADIX_WAYS):
        each_row(pages, (<Directory *> node).child[i], height - 1,
                 first + (i << (PAGE_BITS + RADIX_BITS * (height - 1))), visit, context)
    return 0


cdef int pages_each(const Pages *pages, const Paged *array, EachRow visit,
                    void *context) except -1:
    return each_row(pages, array.root, array.height, 0, visit, context)
