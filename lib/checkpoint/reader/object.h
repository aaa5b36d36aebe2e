// Reads groups and datasets of an HDF5 file, limited to the features that dtrain writes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"
#include "checkpoint/reader/image.h"
#include "checkpoint/reader/object_header.h"

namespace dtrain {

/// Returns the address of the root group's object header.
uint64_t root_address(Image& image);

/// The links and attributes of a group. `path`: the path of the group for messages.
class Group {
 public:
  /// Throws UserError if there is no group at `address`, or if the group contains links other than hard
  /// links.
  Group(Image& image, uint64_t address, std::string path);

  /// Returns the address of the object with this name, or nullopt if there is none.
  std::optional<uint64_t> find(std::string_view name) const;
  /// Returns the strings of an attribute without their padding; nullopt if the attribute does not exist.
  /// Throws UserError if the attribute does not contain fixed-length strings.
  std::optional<std::vector<std::string>> strings(std::string_view name) const;

 private:
  void add_link(std::span<const std::byte> message);
  void add_attribute(std::span<const std::byte> message);

  std::string path_;
  std::unordered_map<std::string_view, uint64_t> links_;
  struct Attribute {
    std::span<const std::byte> type, space, data;
  };
  std::unordered_map<std::string_view, Attribute> attributes_;
};

/// A contiguous little-endian array of a type that dtrain supports.
struct ContiguousArray {
  Shape shape;
  DType dtype;
  std::span<const std::byte> data;  // has the same alignment as in the file
};

/// Reads the dataset at `address`. Throws UserError if there is no dataset, or if it is not contiguous.
/// `alignment`: the alignment that the data must have in the file.
ContiguousArray read_dataset(Image& image, uint64_t address, const std::string& path, size_t alignment);

}  // namespace dtrain
