// Tests the layout of parameters in one buffer, and in the buffers of several slots.
#include "nn/parameters.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "support/graphs.h"

using namespace dtrain;
using namespace dtrain::test;

namespace {

/// Returns a graph of an input and nodes 1 to 6: 'c' shares the weights of 'a', 'd' is frozen, 'norm' has
/// statistics.
Graph graph_of_many() {
  return graph_from(R"(
inputs: {x: [3]}
layers:
  - dense: {name: a, units: 3}
  - batch_normalization: {name: norm}
  - dense: {name: b, units: 20}
  - dense: {name: back, units: 3, use_bias: false}
  - dense: {name: c, shared_with: a}
  - dense: {name: d, units: 5, trainable: false}
)");
}

std::vector<std::string> slice_names(const ParameterLayout& layout) {
  std::vector<ParameterSlice> slices = layout.slices();
  std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
  std::vector<std::string> names;
  for (const ParameterSlice& slice : slices) names.push_back(slice.path());
  return names;
}

using Names = std::vector<std::string>;

/// Returns one pair for each float of the whole layout. For floats in `range`, the pair is {slot, offset on
/// this slot}. For all other floats, it is {-1, -1}.
std::vector<std::pair<int, int64_t>> places_of(const ModelLayout& layout, Range range) {
  std::vector<std::pair<int, int64_t>> places(static_cast<size_t>(layout.whole().size()), {-1, -1});
  int64_t last = -1;
  layout.for_each_piece(range, [&](const ModelLayout::Piece& piece) {
    CHECK(piece.at > last);  // pieces are sorted
    CHECK(piece.on_slot.size() > 0);
    for (int64_t i = 0; i < piece.on_slot.size(); ++i) {
      last = piece.at + i;
      REQUIRE(last >= range.begin);
      REQUIRE(last < range.end);
      places[static_cast<size_t>(last)] = {piece.slot, piece.on_slot.begin + i};
    }
  });
  return places;
}

}  // namespace

TEST_CASE("a layout has trained parameters in reversed order, then statistics, then frozen parameters") {
  const Graph graph = graph_of_many();
  const ParameterLayout layout(graph);
  CHECK(slice_names(layout) == Names{"back/kernel", "b/bias", "b/kernel", "norm/beta", "norm/gamma", "a/bias",
                                     "a/kernel", "norm/moving_variance", "norm/moving_mean", "d/bias",
                                     "d/kernel"});
  int64_t end = 0;
  for (const ParameterSlice& slice : layout.slices()) {
    CHECK(slice.offset % 16 == 0);
    end = std::max(end, slice.offset + slice.elements());
  }
  CHECK(end <= layout.size());
  CHECK(layout.trained() == 64 + 32 + 64 + 16 + 16 + 16 + 16);
  CHECK(layout.with_gradient() == layout.trained() + 32);
  CHECK(layout.size() == layout.with_gradient() + 32);
  CHECK(layout.users(1) == 2);
  CHECK(layout.users(5) == 2);
  CHECK(layout.users(3) == 1);
  CHECK(&layout.slice(5, 0) == &layout.slice(1, 0));
}

TEST_CASE("shares cover all gradients, equally or with whole parameters") {
  const ParameterLayout layout(graph_of_many());
  for (const int replicas : {1, 2, 3, 5, 9, 30})
    for (const bool whole : {false, true}) {
      CAPTURE(replicas);
      CAPTURE(whole);
      const std::vector<Range> shares = layout.shares(replicas, whole);
      REQUIRE(shares.size() == static_cast<size_t>(replicas));
      int64_t at = 0, smallest = layout.with_gradient(), largest = 0;
      for (const Range& share : shares) {
        CHECK(share.begin == at);
        CHECK(share.size() >= 0);
        at = share.end;
        smallest = std::min(smallest, share.size());
        largest = std::max(largest, share.size());
        if (whole && share.begin < layout.with_gradient())
          CHECK(std::any_of(layout.slices().begin(), layout.slices().end(),
                            [&](const ParameterSlice& slice) { return slice.offset == share.begin; }));
      }
      CHECK(at == layout.with_gradient());
      // 64 is the size of the largest parameter.
      if (whole)
        CHECK(largest <= layout.with_gradient() / replicas + 2 * 64 + 16);
      else
        CHECK(largest - smallest <= ParameterLayout::kAlignment);
    }
  // The whole layout is [back/kernel 64 | b/bias 32 | b/kernel 64 | five parameters of 16 | statistics 32].
  // Without whole parameters, the first of two shares ends in the middle, at 128. With whole parameters, it
  // ends at a border between parameters, at 96.
  CHECK(layout.shares(2, true)[0].end == 96);
  CHECK(layout.shares(2, false)[0].end == 128);
}

TEST_CASE("a model's layout on one slot is a single piece") {
  const Graph graph = graph_of_many();
  const ModelLayout layout(graph, {}, 1);
  CHECK(layout.slots() == 1);
  CHECK(slice_names(layout.on(0)) == slice_names(layout.whole()));
  CHECK(layout.owner_slot(5) == 0);
  int pieces = 0;
  layout.for_each_piece({3, 77}, [&](const ModelLayout::Piece& piece) {
    ++pieces;
    CHECK(piece.slot == 0);
    CHECK(piece.on_slot.begin == 3);
    CHECK(piece.on_slot.end == 77);
    CHECK(piece.at == 3);
  });
  CHECK(pieces == 1);
}

TEST_CASE("each parameter is on the slot of its node, and a shared parameter on the slot of its first node") {
  const Graph graph = graph_of_many();
  //                            x  a  norm b  back c  d
  const std::vector<int> slots{0, 1, 0, 2, 1, 2, 0};
  REQUIRE(graph.nodes.size() == slots.size());
  const ModelLayout layout(graph, slots, 4);
  CHECK(layout.slots() == 4);
  CHECK(slice_names(layout.on(0)) ==
        Names{"norm/beta", "norm/gamma", "norm/moving_variance", "norm/moving_mean", "d/bias", "d/kernel"});
  CHECK(slice_names(layout.on(1)) == Names{"back/kernel", "a/bias", "a/kernel"});
  CHECK(slice_names(layout.on(2)) == Names{"b/bias", "b/kernel"});
  CHECK(layout.on(3).slices().empty());
  CHECK(layout.on(3).size() == 0);
  CHECK(layout.owner_slot(5) == 1);
  CHECK(layout.on(1).users(5) == 2);
  CHECK(layout.on(1).slice(5, 1).name == "bias");

  // Every region's size is the sum of its sizes on the slots, and every float of a parameter is on exactly
  // one slot.
  int64_t trained = 0, with_gradient = 0, size = 0;
  for (int slot = 0; slot < layout.slots(); ++slot) {
    trained += layout.on(slot).trained();
    with_gradient += layout.on(slot).with_gradient();
    size += layout.on(slot).size();
  }
  CHECK(trained == layout.whole().trained());
  CHECK(with_gradient == layout.whole().with_gradient());
  CHECK(size == layout.whole().size());

  const auto all = places_of(layout, {0, layout.whole().size()});
  std::set<std::pair<int, int64_t>> seen;
  size_t found = 0;
  for (const ParameterSlice& slice : layout.whole().slices()) {
    const int slot = layout.owner_slot(slice.node);
    const ParameterSlice& there = layout.on(slot).slice(slice.node, slice.index);
    CHECK(there.layer + there.name == slice.layer + slice.name);
    for (int64_t i = 0; i < slice.elements(); ++i) {
      const auto& place = all[static_cast<size_t>(slice.offset + i)];
      CHECK(place == std::pair{slot, there.offset + i});
      seen.insert(place);
      ++found;
    }
  }
  CHECK(seen.size() == found);
  // Padding of the whole layout is on none of the slots.
  CHECK(static_cast<size_t>(std::count_if(all.begin(), all.end(),
                                          [](const auto& place) { return place.first >= 0; })) == found);

  // A part of the whole range gives the same places as the whole range, even if the part begins or ends
  // within a parameter.
  for (const Range part : {Range{0, 1}, Range{5, 70}, Range{63, 64}, Range{17, 17}, Range{80, 230},
                           Range{layout.whole().trained(), layout.whole().size()}}) {
    CAPTURE(part.begin);
    const auto places = places_of(layout, part);
    for (int64_t i = part.begin; i < part.end; ++i)
      CHECK(places[static_cast<size_t>(i)] == all[static_cast<size_t>(i)]);
  }
}

TEST_CASE("initial values do not depend on the slots") {
  const Graph graph = graph_of_many();
  const ParameterLayout layout(graph);
  std::vector<float> values(static_cast<size_t>(layout.size()));
  initialize(graph, layout, 7, values.data());
  const std::vector<int> slots{0, 1, 0, 2, 1, 2, 0};
  const ModelLayout on_slots(graph, slots, 3);
  for (int slot = 0; slot < 3; ++slot) {
    std::vector<float> its(static_cast<size_t>(on_slots.on(slot).size()));
    initialize(graph, on_slots.on(slot), 7, its.data());
    on_slots.for_each_piece({0, layout.size()}, [&](const ModelLayout::Piece& piece) {
      if (piece.slot == slot)
        CHECK(std::equal(its.begin() + piece.on_slot.begin, its.begin() + piece.on_slot.end,
                         values.begin() + piece.at));
    });
  }
}
