// Pictures that are files of their own.
#pragma once

#include <memory>

#include "data/files/folder_listing.h"
#include "data/pictures/picture_source.h"

namespace dtrain {

/// They are opened when they are read, and must be then what they were when they were listed.
std::shared_ptr<const PictureSource> picture_files(FileListing listing);

/// A picture that lies in a file, `bytes` bytes from `offset` on: as PictureSource::read().
int64_t read_picture_at(const InputFile& file, const std::string& name, int64_t offset, int64_t bytes,
                        int64_t most, std::vector<uint8_t>& dst);

}  // namespace dtrain
