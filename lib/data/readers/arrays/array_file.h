// Reads one array of a file row by row. Used for idx and npy files, and for contiguous datasets of hdf5
// files.
#pragma once

#include <functional>
#include <string>

#include "data/columns/column.h"
#include "data/files/input_file.h"
#include "data/files/stored_type.h"

namespace dtrain {

/// The header of an array. The first extent of the shape is the number of rows.
struct ArrayHeader {
  StoredType type;
  Shape shape;
};

/// Reads a header from the stream, and leaves the stream at the first element. Throws UserError if there is
/// no header.
using ParseArrayHeader = std::function<ArrayHeader(InputStream&)>;

/// Opens a file with one array. If the file is not compressed, its rows are read on demand. A gzip file is
/// decompressed into memory when it is opened. The size in the header is checked against the file's size
/// before any memory is allocated for the array. Throws UserError if the file does not match its header.
std::shared_ptr<const Column> open_array_file(const std::string& path, const ParseArrayHeader& parse_header);

/// Opens the array that begins at `offset` of an uncompressed file. `name` is the name of the array in
/// messages. Throws UserError if the file ends before the array does.
std::shared_ptr<const Column> rows_in_file(std::shared_ptr<const InputFile> file, const std::string& name,
                                           ArrayHeader header, int64_t offset);

/// Decodes the `count` stored values at `src` with decode() (data/files/stored_type.h), and writes the
/// results to `dst`, an array of type.dtype(). Throws UserError if a value does not fit into type.dtype().
/// The message contains `name`, which is the name of the array, and the index of the value in the array.
/// `first_element` is the index of the first value at `src`.
void decode_rows(const std::string& name, StoredType type, int64_t first_element, const void* src, void* dst,
                 int64_t count);

/// Throws UserError unless the shape of an array in the file is valid: at least one axis, no negative extent,
/// and less than 2^60 bytes.
void check_shape(const std::string& path, const Shape& shape, int element_bytes);

}  // namespace dtrain
