// How a user says pictures are to be read.
#pragma once

#include <optional>

#include "config/codec.h"
#include "image/decode.h"

namespace dtrain {

/// What becomes of a picture that cannot be read.
enum class OnError {
  error,  // the first one ends the run, as early as possible
  skip,   // it is left out, and counted
};

template <>
inline const EnumNames<Resize> names_of<Resize> = {
    {Resize::stretch, "stretch"}, {Resize::crop, "crop"}, {Resize::pad, "pad"}};
template <>
inline const EnumNames<OnError> names_of<OnError> = {{OnError::error, "error"}, {OnError::skip, "skip"}};

/// How pictures are to be read. What is not set is the model's input's.
struct PictureOptions {
  std::optional<Size2> size;
  Resize resize = Resize::stretch;
  std::optional<int64_t> channels;
  OnError on_error = OnError::error;
};

}  // namespace dtrain
