// Checks how an HDF5 file stores its data, and rejects storage that libhdf5 would read from other files or
// read incorrectly.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "hdf5/hdf5_session.h"

namespace dtrain {

/// Returns an error that explains why libhdf5 just failed to open the file.
UserError why_not_opened(const std::string& path);

/// Throws UserError unless every component of `name`, starting at `group`, is a hard link, because an
/// external link in a file could make libhdf5 open any other file. Stops at the first missing component.
void reject_links(hid_t group, const std::string& path, const std::string& name);

/// Throws UserError if the dataset is stored in other files or uses a filter that this libhdf5 lacks.
void reject_foreign_storage(hid_t dataset, const std::string& where);

/// Throws UserError if a dataset's chunk index is damaged or lacks chunks; libhdf5 1.10 returns zeros for
/// chunks that it does not find. A dataset with a user-defined fill value may lack chunks.
void check_chunk_index(hid_t dataset, const std::string& where);

/// Throws UserError if the first compressed chunk of a numeric dataset does not unpack to the size of a
/// chunk; libhdf5 would fill the rest with adjacent memory. Detects damaged chunk extents, for which the
/// first chunk suffices. `file_bytes` is the size of the file.
void check_first_chunk(hid_t dataset, const std::string& where, int64_t file_bytes);

}  // namespace dtrain
