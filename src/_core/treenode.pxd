# cython: language_level=3
# How a node of a tree lies in memory: columns of words, not rows of items. See docs/hamt.md.
#
# There is no treenode.pyx: ordered.pyx, which owns the nodes, and treecheck.pyx get inline copies.
# Nothing here allocates.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

cdef extern from "bits.h" nogil:
    # How many of *count* ascending words are below *wanted*, and how many are not above it.
    uint32_t below "bits_below"(const int64_t *words, uint32_t count, int64_t wanted) noexcept
    uint32_t up_to "bits_up_to"(const int64_t *words, uint32_t count, int64_t wanted) noexcept

# Ordered by as many words of (k0, k1, k2) as the trees keep, then by the comparator hook on
# `value`; without a hook, items with equal words are the same item. The other words are 0.
cdef struct Item:
    int64_t k0
    int64_t k1
    int64_t k2
    int64_t value

ctypedef int (*Compare)(const void *context, int64_t a, int64_t b) noexcept nogil

# What the nodes of many trees have in common.
cdef struct Form:
    Compare compare        # NULL: none
    const void *context
    uint32_t words         # of a key, 1 to 3
    uint32_t value_bytes   # 8, or 4: values are slots
    uint32_t leaf_items    # at most LEAF_ITEMS and INNER_WAYS; tests take less, for tall trees
    uint32_t inner_ways

cdef enum:
    LEAF_ITEMS = 32
    INNER_WAYS = 32

# Followed by `capacity` children (an inner node only), the leading words that all items of a leaf
# share, a column of `capacity` for each other word, a column of values. An inner node has the
# smallest item of each child (of the first: unused, it may be lower by now) and shares none.
cdef struct Head:
    uint64_t stamp
    uint32_t fresh
    uint8_t count      # items or children
    uint8_t level      # 0: a leaf
    uint8_t capacity
    uint8_t shared     # words


cdef inline Head *head(const void *node) noexcept nogil:
    return <Head *> node


cdef inline size_t node_size(const Form *form, uint32_t level, uint32_t capacity,
                             uint32_t shared) noexcept nogil:
    cdef size_t cell = 8 * <size_t> (form.words - shared) + form.value_bytes
    if level:
        cell += 8  # a child, with room for a pointer of any size
    return sizeof(Head) + 8 * shared + capacity * cell


cdef inline void **children(const void *node) noexcept nogil:
    """Of an inner node."""
    return <void **> (<char *> node + sizeof(Head))


cdef inline int64_t *words_at(const void *node) noexcept nogil:
    """The shared words, then the columns."""
    return <int64_t *> (<char *> node + sizeof(Head)) + (
        head(node).capacity if head(node).level else 0)


cdef inline int64_t *column(const void *node, uint32_t word) noexcept nogil:
    """All of the words that stand *word*-th in the items; it is not shared."""
    return words_at(node) + head(node).shared + head(node).capacity * (word - head(node).shared)


cdef inline int64_t word_of(const void *node, uint32_t word, uint32_t at) noexcept nogil:
    return words_at(node)[word] if word < head(node).shared else column(node, word)[at]


cdef inline int64_t value_of(const Form *form, const void *node, uint32_t at) noexcept nogil:
    cdef void *values = column(node, form.words)
    return (<int64_t *> values)[at] if form.value_bytes == 8 else (<uint32_t *> values)[at]


cdef inline void set_value(const Form *form, void *node, uint32_t at,
                           int64_t value) noexcept nogil:
    cdef void *values = column(node, form.words)
    if form.value_bytes == 8:
        (<int64_t *> values)[at] = value
    else:
        assert <uint64_t> value >> 32 == 0, "a value is a slot"
        (<uint32_t *> values)[at] = <uint32_t> value


cdef inline void item_at(const Form *form, const void *node, uint32_t at,
                         Item *item) noexcept nogil:
    item.k0 = word_of(node, 0, at)
    item.k1 = word_of(node, 1, at) if form.words > 1 else 0
    item.k2 = word_of(node, 2, at) if form.words > 2 else 0
    item.value = value_of(form, node, at)


cdef inline void set_item(const Form *form, void *node, uint32_t at,
                          const Item *item) noexcept nogil:
    """Write *item*, which has the words that the node shares, or is its first."""
    cdef const int64_t *words = <const int64_t *> item
    cdef uint32_t word
    for word in range(form.words):
        if word < head(node).shared:
            words_at(node)[word] = words[word]
        else:
            column(node, word)[at] = words[word]
    set_value(form, node, at, item.value)


cdef inline void move_cells(const Form *form, void *to, uint32_t to_at, const void *source,
                            uint32_t at, uint32_t count) noexcept nogil:
    """Copy *count* cells from one node to another of its level, or to another place in it. The
    one they go to shares no word that they do not share with its own."""
    cdef uint32_t word, i
    if count == 0:
        return
    if head(to).level:
        memmove(children(to) + to_at, children(source) + at, count * sizeof(void *))
    for word in range(form.words):
        if word < head(to).shared:
            words_at(to)[word] = word_of(source, word, at)
        elif word >= head(source).shared:
            memmove(column(to, word) + to_at, column(source, word) + at, 8 * <size_t> count)
        else:
            for i in range(count):
                column(to, word)[to_at + i] = words_at(source)[word]
    memmove(<char *> column(to, form.words) + to_at * form.value_bytes,
            <char *> column(source, form.words) + at * form.value_bytes,
            count * <size_t> form.value_bytes)


cdef inline void copy_cells(const Form *form, void *to, const void *source) noexcept nogil:
    """Copy all cells of a node to a new one of its level, which has room for them."""
    head(to).count = head(source).count
    if (head(to).capacity == head(source).capacity
            and head(to).shared == head(source).shared):
        memcpy(<char *> to + sizeof(Head), <const char *> source + sizeof(Head),
               node_size(form, head(to).level, head(to).capacity, head(to).shared)
               - sizeof(Head))
    else:
        move_cells(form, to, 0, source, 0, head(source).count)


cdef inline int order(const Form *form, const Item *a, const Item *b) noexcept nogil:
    """Below, at or above 0."""
    if a.k0 != b.k0:
        return -1 if a.k0 < b.k0 else 1
    if a.k1 != b.k1 and form.words > 1:
        return -1 if a.k1 < b.k1 else 1
    if a.k2 != b.k2 and form.words > 2:
        return -1 if a.k2 < b.k2 else 1
    return 0 if form.compare == NULL else form.compare(form.context, a.value, b.value)


cdef inline uint32_t least(const Form *form, uint32_t level) noexcept nogil:
    """How few items or children a node has, but for the root and the right edge."""
    if level == 0:
        return max(<uint32_t> 1, form.leaf_items >> 2)
    return max(<uint32_t> 2, form.inner_ways >> 2)


cdef inline uint32_t most(const Form *form, uint32_t level) noexcept nogil:
    return form.leaf_items if level == 0 else form.inner_ways


cdef inline uint32_t common(const Form *form, const void *node, uint32_t at,
                            const void *other, uint32_t last) noexcept nogil:
    """How many leading words item *at* of one node shares with item *last* of another, and with
    all that are between them."""
    cdef uint32_t word = 0
    while word < form.words and word_of(node, word, at) == word_of(other, word, last):
        word += 1
    return word


cdef inline uint32_t agreed(const Form *form, const void *node, const Item *item) noexcept nogil:
    """How many leading words *item* shares with the first one of a node."""
    cdef uint32_t word = 0
    while (word < form.words and head(node).count
            and word_of(node, word, 0) == (<const int64_t *> item)[word]):
        word += 1
    return word if head(node).count else form.words


cdef inline uint32_t rank(const Form *form, const void *node, const Item *item, uint32_t low,
                          bint *same) noexcept nogil:
    """The place, from *low* on, of the first item that is not below *item*; whether it is that."""
    cdef uint32_t high = head(node).count, word, middle
    cdef const int64_t *words
    cdef int64_t wanted
    cdef int way
    same[0] = False
    for word in range(form.words):
        wanted = (<const int64_t *> item)[word]
        if word < head(node).shared:
            words = words_at(node)
            if words[word] != wanted:
                return high if words[word] < wanted else low
            continue
        words = column(node, word)
        if low < high and words[low] == wanted and words[high - 1] == wanted:
            continue
        low += below(words + low, high - low, wanted)
        if low == high or words[low] != wanted:
            return low
        if words[high - 1] != wanted:
            high = low + up_to(words + low, high - low, wanted)
    if form.compare == NULL:
        same[0] = low < high
        return low
    while low < high:
        middle = (low + high) >> 1
        way = form.compare(form.context, value_of(form, node, middle), item.value)
        if way == 0:
            same[0] = True
            return middle
        if way < 0:
            low = middle + 1
        else:
            high = middle
    return low
