// What idx, npy and much of hdf5 have in common: one array in a file, row by row.
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

/// Rows of an array that begins at `offset` of a plain file; `name` is what messages call it. Throws
/// UserError where the file ends before the array does.
std::shared_ptr<const Column> rows_in_file(std::shared_ptr<const InputFile> file, const std::string& name,
                                           ArrayHeader header, int64_t offset);

/// decode(), and UserError for a value that does not fit; the first is element `first_element` of its array.
void decode_rows(const std::string& name, StoredType type, int64_t first_element, const void* src, void* dst,
                 int64_t count);

/// Throws UserError unless the extents are sane: at least one axis, no negative extent, a product (in bytes)
/// below 2^60.
void check_shape(const std::string& path, const Shape& shape, int element_bytes);

}  // namespace dtrain
