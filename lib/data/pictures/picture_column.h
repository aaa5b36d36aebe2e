// Columns of pictures that are files of their own.
#pragma once

#include <memory>
#include <string>

#include "data/column.h"
#include "data/pictures/picture_list.h"
#include "data/pictures/picture_options.h"

namespace dtrain {

/// Decodes pictures when they are asked for: rows of [height, width, channels] bytes. Reading throws
/// UserError with the path of a picture that is damaged, and Error for one that was changed since it was
/// listed.
std::shared_ptr<const Column> picture_column(std::string name, std::shared_ptr<const PictureList> list,
                                             const PictureForm& form);

/// The header of a picture of the list. Throws UserError with its path, as decoding would for it.
PictureHeader header_of_picture(const PictureList& list, size_t i);

/// Looks at the pictures by several threads. OnError::error: at their headers; throws UserError for the first
/// one that is none or too large. OnError::skip: decodes them whole, and leaves out those that cannot be.
/// Throws UserError where none is left.
void check_pictures(PictureList& list, const PictureForm& form, OnError on_error);

}  // namespace dtrain
