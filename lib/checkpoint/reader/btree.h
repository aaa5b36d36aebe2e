// Reads HDF5's version 2 B-trees, which index the links and attributes of objects that have many links or
// attributes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/reader/image.h"

namespace dtrain {

/// Record types of B-trees, with HDF5's numbers.
enum class RecordKind : uint8_t { huge_objects = 1, link_names = 5, attribute_names = 8 };

/// Returns all records of the tree whose header is at `address`, in unspecified order. Throws UserError if
/// there is no tree of this record type at `address`.
std::vector<std::span<const std::byte>> read_records(Image& image, uint64_t address, RecordKind kind);

}  // namespace dtrain
