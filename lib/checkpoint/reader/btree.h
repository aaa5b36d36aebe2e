// HDF5's B-trees of version 2, which index the links and attributes of objects that have many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/reader/image.h"

namespace dtrain {

/// The kinds of records that a B-tree may hold, by HDF5's numbers.
enum class RecordKind : uint8_t { huge_objects = 1, link_names = 5, attribute_names = 8 };

/// All records of the tree whose header stands at `address`, in no order. Throws UserError where it is
/// another tree, or none.
std::vector<std::span<const std::byte>> read_records(Image& image, uint64_t address, RecordKind kind);

}  // namespace dtrain
