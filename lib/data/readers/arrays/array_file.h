// Reads one array of a file row by row; used for idx, npy and most of hdf5.
#pragma once

#include <functional>
#include <string>

#include "data/columns/column.h"
#include "data/files/input_file.h"
#include "data/files/stored_type.h"

namespace dtrain {

/// Header of an array. The shape's first axis counts the rows.
struct ArrayHeader {
  StoredType type;
  Shape shape;
};

/// Reads a header from the stream, and leaves the stream at the first element. Throws UserError if there is
/// no header.
using ParseArrayHeader = std::function<ArrayHeader(InputStream&)>;

/// Opens a file with one array. A plain file is read row by row on demand; a gzip file is decompressed into
/// memory at once. The size in the header is checked against the file's size before any memory is allocated
/// for the array. Throws UserError if the file does not match its header.
std::shared_ptr<const Column> open_array_file(const std::string& path, const ParseArrayHeader& parse_header);

/// Opens an array at `offset` of a plain file; `name` is its name in messages. Throws UserError if the file
/// ends before the array does.
std::shared_ptr<const Column> rows_in_file(std::shared_ptr<const InputFile> file, const std::string& name,
                                           ArrayHeader header, int64_t offset);

/// Decodes `count` stored values at `src` to `dst`, an array of type.dtype() (decode() in
/// data/files/stored_type.h). Throws UserError with the index of the first value that does not fit. `name` is
/// the name of the array in messages, `first_element` the index of the first of these values in the array.
void decode_rows(const std::string& name, StoredType type, int64_t first_element, const void* src, void* dst,
                 int64_t count);

/// Throws UserError unless the shape of an array in the file is valid: at least one axis, no negative extent,
/// and less than 2^60 bytes.
void check_shape(const std::string& path, const Shape& shape, int element_bytes);

}  // namespace dtrain
