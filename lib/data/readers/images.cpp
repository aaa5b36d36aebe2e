// Pictures in files of their own: a folder a class.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.h"
#include "data/pictures/open_pictures.h"
#include "data/readers/reader.h"

namespace dtrain {

namespace {

struct ImagesOptions {
  std::string directory;
  std::optional<Size2> size;
  Resize resize = Resize::stretch;
  std::optional<int64_t> channels;
  std::vector<std::string> class_names;
  OnError on_error = OnError::error;
};

class ImagesReader final : public Reader {
 public:
  explicit ImagesReader(const ImagesOptions& options) : options_(options) {}

  SourceColumns open(const ReadRequest& request) const override {
    if (request.inputs.size() != 1 || request.targets.size() > 1)
      request.fail(
          fmt::format("images feeds a model of one input and at most one target; this one has {} and {}",
                      request.inputs.size(), request.targets.size()));
    const std::string folder = request.find(options_.directory);
    if (request.targets.empty())
      return open_pictures(list_pictures(folder), *picture_options(), request.inputs[0]);
    const auto known = request.facts.class_names.find("target");
    const bool is_known = known != request.facts.class_names.end();
    SourceColumns source =
        open_pictures(list_classes(folder, is_known ? known->second : options_.class_names),
                      *picture_options(), request.inputs[0]);
    source.facts.fields = request.facts.fields;
    return source;
  }

  std::vector<std::string> files() const override { return {options_.directory}; }

  std::optional<PictureOptions> picture_options() const override {
    return PictureOptions{options_.size, options_.resize, options_.channels, options_.on_error};
  }

 private:
  ImagesOptions options_;
};

}  // namespace

void add_images(Registry<Reader>& table) {
  const Check<std::optional<int64_t>> kinds{
      "1 (grey), 3 (RGB) or 4 (RGB and alpha)",
      [](const auto& n) { return !n || *n == 1 || *n == 3 || *n == 4; },
      Json::object().set("enum", Json::array().push(1).push(3).push(4))};
  const Check<std::vector<std::string>> names{"names that differ, and are not empty",
                                              [](const auto& all) {
                                                return std::set(all.begin(), all.end()).size() ==
                                                           all.size() &&
                                                       std::find(all.begin(), all.end(), "") == all.end();
                                              },
                                              Json::object().set("uniqueItems", true)};
  Schema<ImagesOptions> schema(
      "JPEG, PNG and BMP files, in a folder for each class: turned as EXIF says, resized bilinearly with "
      "antialiasing to [height, width, channels] of 0 to 255. Without a target all files below the folder.");
  schema.example("{directory: flowers/train, size: [224, 224], resize: crop}");
  schema.required("directory", &ImagesOptions::directory, "the folder of the classes' folders")
      .optional("size", &ImagesOptions::size, "[height, width]; the model's input's where not given")
      .optional("resize", &ImagesOptions::resize,
                "stretch (both axes, each by its own factor), crop (the middle) or pad (black beside it)")
      .optional("channels", &ImagesOptions::channels,
                "1 (grey), 3 (RGB) or 4 (and alpha); the model's input's where not given", kinds)
      .optional("class_names", &ImagesOptions::class_names,
                "the folders' names in the order in which classes are numbered; sorted where not given",
                names)
      .optional(
          "on_error", &ImagesOptions::on_error,
          "a file that is no whole picture: error, or skip, which decodes all of them once before the run "
          "and says how many it left out")
      .positional("directory");
  table.add<ImagesReader>("images", schema);
}

}  // namespace dtrain
