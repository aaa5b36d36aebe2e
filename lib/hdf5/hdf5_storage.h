// How HDF5 files keep what is read out of them: what libhdf5 would read from elsewhere, or wrongly, is
// refused ahead of it.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "hdf5/hdf5_session.h"

namespace dtrain {

/// What is wrong with a file that libhdf5 has just failed to open.
UserError why_not_opened(const std::string& path);

/// Each step of `name` from `group` on must be a link inside the file: an external one would open whatever
/// file the data name. Throws UserError for another one; a step that is not there is nobody's link.
void refuse_links(hid_t group, const std::string& path, const std::string& name);

/// Throws UserError for a dataset that is kept in other files, or packed by a filter that this libhdf5 lacks.
void refuse_foreign_storage(hid_t dataset, const std::string& where);

/// Throws UserError where the index of a dataset's chunks is damaged or lacks chunks: libhdf5 1.10 gives
/// zeros for what it does not find there. A dataset with a fill value of its user's may lack chunks.
void check_chunk_index(hid_t dataset, const std::string& where);

/// Throws UserError where the first packed chunk of a dataset of numbers holds less or more than a chunk
/// does: libhdf5 gives what lies behind it in memory for the rest. The extents of the chunks may be damaged,
/// which the first of them shows. `file_bytes`: of the whole file.
void check_first_chunk(hid_t dataset, const std::string& where, int64_t file_bytes);

}  // namespace dtrain
