// Options that readers of images share.
#pragma once

#include <string>

#include <fmt/format.h>

#include "config/schema.h"
#include "data/pictures/picture_options.h"
#include "data/readers/reader.h"

namespace dtrain {

/// Throws UserError unless the request has exactly one input.
inline void check_one_picture(const ReadRequest& request) {
  if (request.inputs.size() != 1)
    request.fail(
        fmt::format("images need a model with one input; this model has {} inputs", request.inputs.size()));
}

/// Checks a number of channels.
inline Check<std::optional<int64_t>> picture_channels() {
  return {"1 (grayscale), 3 (RGB) or 4 (RGB and alpha)",
          [](const std::optional<int64_t>& n) { return !n || *n == 1 || *n == 3 || *n == 4; },
          Json::object().set("enum", Json::array().push(1).push(3).push(4))};
}

/// Adds the fields of PictureOptions, from which `Options` derives, and the field `class_names`.
template <class Options>
void add_picture_fields(Schema<Options>& schema) {
  schema
      .optional("size", static_cast<std::optional<Size2> Options::*>(&Options::size),
                "[height, width]; default: the size of the model's input")
      .optional("resize", static_cast<Resize Options::*>(&Options::resize),
                "how to fit an image to `size`. `stretch` scales each axis by its own factor, `crop` keeps "
                "the central part that has the aspect ratio of `size`, and `pad` keeps the whole image and "
                "adds black borders")
      .optional("channels", static_cast<std::optional<int64_t> Options::*>(&Options::channels),
                "1 (grayscale), 3 (RGB) or 4 (RGB and alpha); default: the channels of the model's input",
                picture_channels())
      .optional("on_error", static_cast<OnError Options::*>(&Options::on_error),
                "what to do with a file that is not a complete image. `error` ends the run with an error; "
                "`skip` leaves the file out. With `skip`, all files are decoded once at the beginning of the "
                "run, and the number of files that are left out is reported")
      .optional("class_names", &Options::class_names,
                "names of the classes, in the order of their indices. Default: the names in the data, sorted",
                distinct_names());
}

}  // namespace dtrain
