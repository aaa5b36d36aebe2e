// Reads one array in a file row by row, as idx, npy and much of hdf5 hold it.
#pragma once

#include <functional>
#include <string>

#include "data/columns/column.h"
#include "data/files/input_file.h"
#include "data/files/stored_type.h"

namespace dtrain {

/// What the header of an array says. The shape's first axis counts the rows.
struct ArrayHeader {
  StoredType type;
  Shape shape;
};

/// Reads a header off the stream, and leaves the stream at the first element. Throws UserError where there is
/// no header.
using ParseArrayHeader = std::function<ArrayHeader(InputStream&)>;

/// Opens a file of one array. A plain file is read row by row when rows are asked for; a gzip file is decoded
/// into memory at once. The size that the header says is checked against the file's before anything is
/// allocated for it. Throws UserError where the file is not what its header says.
std::shared_ptr<const Column> open_array_file(const std::string& path, const ParseArrayHeader& parse_header);

/// Opens an array that begins at `offset` of a plain file; messages call it `name`. Throws UserError where
/// the file ends before the array does.
std::shared_ptr<const Column> rows_in_file(std::shared_ptr<const InputFile> file, const std::string& name,
                                           ArrayHeader header, int64_t offset);

/// Does what decode() does, and throws UserError for a value that does not fit. The first value is element
/// `first_element` of its array, for the message.
void decode_rows(const std::string& name, StoredType type, int64_t first_element, const void* src, void* dst,
                 int64_t count);

/// Throws UserError unless the extents are sane: at least one axis, no negative extent, a product (in bytes)
/// below 2^60.
void check_shape(const std::string& path, const Shape& shape, int element_bytes);

}  // namespace dtrain
