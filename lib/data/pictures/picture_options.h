// Options for reading images.
#pragma once

#include <optional>

#include "config/codec.h"
#include "image/decode.h"

namespace dtrain {

/// What to do with an image that cannot be read.
enum class OnError {
  error,  // the run ends with an error at the first unreadable image, as early as possible
  skip,   // unreadable images are left out and counted
};

template <>
inline const EnumNames<Resize> names_of<Resize> = {
    {Resize::stretch, "stretch"}, {Resize::crop, "crop"}, {Resize::pad, "pad"}};
template <>
inline const EnumNames<OnError> names_of<OnError> = {{OnError::error, "error"}, {OnError::skip, "skip"}};

/// Meaning of the pixels of a target image: colors, or class numbers.
enum class TargetPicture { colors, classes };

/// Options for reading images. If the size or the channels are not set, they are taken from the model's
/// input.
struct PictureOptions {
  std::optional<Size2> size;
  Resize resize = Resize::stretch;
  std::optional<int64_t> channels;
  OnError on_error = OnError::error;
};

}  // namespace dtrain
