/* A rival of the node search: one std::set of nodes ordered by what they have left, walked from
 * the least that could do until one does. What a placement changes is a key taken out and put
 * back; the node of the tree is used again, so that nothing is allocated. No names, no undo.
 *
 * The search is best fit: least left of the first resource, then of the next, then the lower
 * number. `ordered_walk.py` compiles this and says how it is called.
 */
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace {

struct Walk {
  virtual ~Walk() = default;
  virtual void place(ptrdiff_t jobs, const int64_t *shapes, const int32_t *shape_of,
                     int32_t *node_of) = 0;
};

template <size_t width>
class OrderedWalk final : public Walk {
  struct Key {
    std::array<int64_t, width> left;
    int32_t node;
    bool operator<(const Key &other) const {
      return left != other.left ? left < other.left : node < other.node;
    }
  };
  std::set<Key> keys_;

  static bool fits(const Key &key, const int64_t *wanted) {
    for (size_t r = 0; r < width; r++)
      if (key.left[r] < wanted[r]) return false;
    return true;
  }

  int32_t place_one(const int64_t *wanted) {
    Key least;
    for (size_t r = 0; r < width; r++) least.left[r] = wanted[r];
    least.node = -1;
    auto found = keys_.lower_bound(least);
    while (found != keys_.end() && !fits(*found, wanted)) ++found;
    if (found == keys_.end()) return -1;
    auto handle = keys_.extract(found);
    for (size_t r = 0; r < width; r++) handle.value().left[r] -= wanted[r];
    const int32_t node = handle.value().node;
    keys_.insert(std::move(handle));
    return node;
  }

 public:
  OrderedWalk(ptrdiff_t nodes, const int64_t *left) {
    for (ptrdiff_t node = 0; node < nodes; node++) {
      Key key;
      for (size_t r = 0; r < width; r++) key.left[r] = left[node * width + r];
      key.node = static_cast<int32_t>(node);
      keys_.insert(key);
    }
  }

  void place(ptrdiff_t jobs, const int64_t *shapes, const int32_t *shape_of,
             int32_t *node_of) override {
    for (ptrdiff_t job = 0; job < jobs; job++)
      node_of[job] = place_one(shapes + shape_of[job] * width);
  }
};

}  // namespace

extern "C" {

/* `left` is [nodes][width]. NULL for a width that nothing was compiled for. */
void *ordered_walk_new(ptrdiff_t nodes, ptrdiff_t width, const int64_t *left) {
  Walk *made = nullptr;
  switch (width) {
    case 1: made = new OrderedWalk<1>(nodes, left); break;
    case 2: made = new OrderedWalk<2>(nodes, left); break;
    case 3: made = new OrderedWalk<3>(nodes, left); break;
    case 4: made = new OrderedWalk<4>(nodes, left); break;
    default: break;
  }
  return made;
}

/* `shapes` is [shapes][width]; job i wants shapes[shape_of[i]] and goes to node_of[i], -1: none. */
void ordered_walk_place(void *walk, ptrdiff_t jobs, const int64_t *shapes,
                        const int32_t *shape_of, int32_t *node_of) {
  static_cast<Walk *>(walk)->place(jobs, shapes, shape_of, node_of);
}

void ordered_walk_free(void *walk) { delete static_cast<Walk *>(walk); }
}
