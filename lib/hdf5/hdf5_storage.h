// Checks how the data of an HDF5 file are stored. Rejects data that libhdf5 would read incorrectly and data
// that are stored in other files.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "hdf5/hdf5_session.h"

namespace dtrain {

/// Returns an error that says why libhdf5 could not open the file. Must be called directly after the failed
/// call.
UserError why_not_opened(const std::string& path);

/// Throws UserError if a component of the path `name`, which begins at `group`, is not a hard link. External
/// links are rejected because libhdf5 would open any file to which they refer. If a component does not exist,
/// the following components are not checked.
void reject_links(hid_t group, const std::string& path, const std::string& name);

/// Throws UserError if the data of the dataset are stored in other files, or if they are stored with a filter
/// that this build of libhdf5 does not have.
void reject_foreign_storage(hid_t dataset, const std::string& where);

/// Throws UserError if the chunk index of a dataset is damaged, or if chunks are missing although the dataset
/// has no user-defined fill value. This check is needed because libhdf5 1.10 returns zeros for chunks that it
/// does not find.
void check_chunk_index(hid_t dataset, const std::string& where);

/// Throws UserError if the first compressed chunk of a numeric dataset does not have the size of a chunk
/// after decompression. libhdf5 would fill the rest of the chunk with adjacent memory. The check detects
/// damaged chunk extents; since all chunks have the same extents, the first chunk suffices. `file_bytes` is
/// the size of the file.
void check_first_chunk(hid_t dataset, const std::string& where, int64_t file_bytes);

}  // namespace dtrain
