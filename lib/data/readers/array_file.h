// What idx and npy have in common: a header, then one array, row by row.
#pragma once

#include <functional>
#include <string>

#include "data/column.h"
#include "data/input_file.h"
#include "data/stored_type.h"

namespace dtrain {

/// What such a header says. The shape's first axis counts the rows.
struct ArrayHeader {
  StoredType type;
  Shape shape;
};

/// Reads a header off the stream, and leaves it at the first element. Throws UserError for what is none.
using ParseArrayHeader = std::function<ArrayHeader(InputStream&)>;

/// A plain file is read by rows, where its columns are; a gzip file is decoded at once. The header's claim is
/// checked against the file's size before anything is allocated for it.
std::shared_ptr<const Column> open_array_file(const std::string& path, const ParseArrayHeader& parse_header);

/// Throws UserError unless the extents are sane: at least one axis, no negative extent, a product (in bytes)
/// below 2^60.
void check_shape(const std::string& path, const Shape& shape, int element_bytes);

}  // namespace dtrain
