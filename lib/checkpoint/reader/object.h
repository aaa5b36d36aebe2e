// Groups and datasets of an HDF5 file, as far as dtrain writes them.
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

/// The address of the root group's header.
uint64_t root_address(Image& image);

/// A group's links and attributes. `path`: for messages.
class Group {
 public:
  /// Throws UserError where there is none, or one with links that are not to objects of this file.
  Group(Image& image, uint64_t address, std::string path);

  /// The address of the object of this name, or nothing.
  std::optional<uint64_t> find(std::string_view name) const;
  /// The strings of an attribute, without what pads them; nothing where there is no such attribute. Throws
  /// UserError where it holds something other than strings of a fixed length.
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

/// A contiguous array, little endian, of a type that dtrain knows.
struct ContiguousArray {
  Shape shape;
  DType dtype;
  std::span<const std::byte> data;  // aligned as in the file
};

/// Throws UserError where there is none, or one that is stored in any other way. `alignment`: of its data in
/// the file.
ContiguousArray read_dataset(Image& image, uint64_t address, const std::string& path, size_t alignment);

}  // namespace dtrain
