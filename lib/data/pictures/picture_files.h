// Images in separate files.
#pragma once

#include <memory>

#include "data/files/folder_listing.h"
#include "data/pictures/picture_source.h"

namespace dtrain {

/// Returns the images in these files. A file is opened each time its image is read. It must not have changed
/// since it was listed.
std::shared_ptr<const PictureSource> picture_files(FileListing listing);

/// Reads an image that is stored in a part of a file: `bytes` bytes at `offset`. Otherwise like
/// PictureSource::read().
int64_t read_picture_at(const InputFile& file, const std::string& name, int64_t offset, int64_t bytes,
                        int64_t most, std::vector<uint8_t>& dst);

}  // namespace dtrain
