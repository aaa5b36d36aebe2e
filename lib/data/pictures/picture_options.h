// Options for reading images.
#pragma once

#include <optional>

#include "config/codec.h"
#include "image/decode.h"

namespace dtrain {

/// Reaction to an image that cannot be read.
enum class OnError {
  error,  // the first such image ends the run, as early as possible
  skip,   // the image is left out and counted
};

template <>
inline const EnumNames<Resize> names_of<Resize> = {
    {Resize::stretch, "stretch"}, {Resize::crop, "crop"}, {Resize::pad, "pad"}};
template <>
inline const EnumNames<OnError> names_of<OnError> = {{OnError::error, "error"}, {OnError::skip, "skip"}};

/// The meaning of a target image's pixels: colours, or the numbers of classes.
enum class TargetPicture { colours, classes };

/// Options for reading images. The model's input determines the size and the channels if they are not set.
struct PictureOptions {
  std::optional<Size2> size;
  Resize resize = Resize::stretch;
  std::optional<int64_t> channels;
  OnError on_error = OnError::error;
};

}  // namespace dtrain
