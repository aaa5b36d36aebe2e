#include "checkpoint/reader/btree.h"

#include <fmt/format.h>

namespace dtrain {

namespace {

constexpr size_t kTreeHeaderBytes = 38;
// bytes before a node's records (signature, version and type) and after them (checksum)
constexpr size_t kNodeFrame = 10;
// maximum number of levels below the root; nodes have dozens of records, so this is enough
constexpr size_t kMostLevels = 8;

size_t record_bytes(RecordKind kind) {
  switch (kind) {
    case RecordKind::huge_objects:
      return 24;
    case RecordKind::link_names:
      return 11;
    case RecordKind::attribute_names:
      return 17;
  }
  return 0;
}

class Tree {
 public:
  Tree(Image& image, uint64_t address, RecordKind kind) : image_(image), kind_(kind) {
    Cursor header(image.read_block("BTHD", address, kTreeHeaderBytes), "a B-tree's header");
    header.expect(0, "version");
    header.expect(static_cast<uint8_t>(kind), "the record type");
    node_bytes_ = header.number(4);
    if (const uint64_t found = header.number(2); found != record_bytes(kind))
      refuse("an HDF5 B-tree", fmt::format("records of {} bytes", record_bytes(kind)),
             fmt::format("records of {} bytes", found));
    const size_t levels = header.number(2);
    header.skip(2);  // split and merge percentages
    const uint64_t root = header.address();
    const uint64_t root_records = header.number(2);
    settle_widths(levels);
    if (root_records > 0) read_node(root, root_records, levels);
  }

  std::vector<std::span<const std::byte>> records;

 private:
  /// Capacity of the nodes of one level, which determines the width of pointers to such nodes. Levels are
  /// counted from the leaves to the root.
  struct Level {
    uint64_t most_records;
    uint64_t most_below;  // capacity of the whole subtree: the number of its records
    size_t pointer_bytes;
  };

  void settle_widths(size_t levels) {
    const size_t size = record_bytes(kind_);
    const auto reject_size = [&] {
      refuse("an HDF5 B-tree", "nodes of a valid size", fmt::format("nodes of {} bytes", node_bytes_));
    };
    if (levels > kMostLevels)
      refuse("an HDF5 B-tree", fmt::format("at most {} levels", kMostLevels),
             fmt::format("{} levels", levels));
    if (node_bytes_ < kNodeFrame + size || node_bytes_ > image_.size()) reject_size();
    const uint64_t in_leaf = (node_bytes_ - kNodeFrame) / size;
    levels_.push_back({in_leaf, in_leaf, 0});
    count_bytes_ = bytes_for(in_leaf);
    for (size_t level = 1; level <= levels; ++level) {
      const Level below = levels_.back();
      const size_t pointer = 8 + count_bytes_ + (level > 1 ? bytes_for(below.most_below) : 0);
      if (node_bytes_ < kNodeFrame + pointer + size + pointer) reject_size();
      const uint64_t most = (node_bytes_ - kNodeFrame - pointer) / (size + pointer);
      uint64_t in_subtrees = 0;
      if (__builtin_mul_overflow(most + 1, below.most_below, &in_subtrees) || in_subtrees > kNoAddress - most)
        reject_size();
      levels_.push_back({most, in_subtrees + most, pointer});
    }
  }

  void read_node(uint64_t address, uint64_t count, size_t level) {
    const Level& of = levels_[level];
    Cursor node(image_.read_block(level > 0 ? "BTIN" : "BTLF", address, node_bytes_), "a B-tree's node");
    node.expect(0, "version");
    node.expect(static_cast<uint8_t>(kind_), "the record type");
    if (count > of.most_records)
      refuse("an HDF5 B-tree", fmt::format("at most {} records in a node", of.most_records),
             fmt::format("a node with {} records", count));
    for (uint64_t i = 0; i < count; ++i) records.push_back(node.take(record_bytes(kind_)));
    if (level == 0) return;
    for (uint64_t i = 0; i <= count; ++i) {
      Cursor pointer(node.take(of.pointer_bytes), "a B-tree's node");
      const uint64_t child = pointer.address();
      read_node(child, pointer.number(count_bytes_), level - 1);
    }
  }

  Image& image_;
  RecordKind kind_;
  uint64_t node_bytes_ = 0;
  size_t count_bytes_ = 0;  // width in bytes of the record count of a node
  std::vector<Level> levels_;
};

}  // namespace

std::vector<std::span<const std::byte>> read_records(Image& image, uint64_t address, RecordKind kind) {
  return std::move(Tree(image, address, kind).records);
}

}  // namespace dtrain
