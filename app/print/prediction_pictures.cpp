#include "print/prediction_pictures.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files/new_file.h"
#include "base/files/paths.h"
#include "data/readers/reader.h"
#include "data/stages/number_at.h"
#include "image/encode.h"

namespace dtrain {

namespace {

namespace fs = std::filesystem;

/// Returns the reader that defines the run's targets: the reader of `train` or, if `train` has no reader, of
/// another split. Returns null if no split has a reader.
const Reader* reader_of_targets(const DatasetSpec& dataset) {
  for (const char* name : kSplitNames)
    if (const SplitSpec* split = dataset.find(name); split && split->reader) return split->reader.value.get();
  return nullptr;
}

TargetPicture pixels_of(const RunConfig& config, const Head& head) {
  const Reader* reader = reader_of_targets(config.dataset);
  if (reader)
    if (const auto pixels = reader->target_picture()) return *pixels;
  const bool is_input = config.dataset.train && config.dataset.train->find_input_target(head.target.name);
  return !is_input && head.loss && head.loss->tells_classes() ? TargetPicture::classes
                                                              : TargetPicture::colors;
}

/// Returns the name of each sample's files, without the extension.
std::vector<std::string> file_names_of(const Dataset& inputs) {
  std::vector<std::string> names;
  std::map<std::string, int64_t> samples;
  for (int64_t i = 0; i < inputs.size(); ++i) {
    names.push_back(inputs.has_ids() ? fs::path(inputs.sample_id(i)).stem().string()
                                     : fmt::format("{:06}", i));
    if (names.back().empty())
      throw UserError(fmt::format(
          "--output: sample {} (counted from 0) has an empty name, so its image cannot be named", i));
    const auto [first, is_new] = samples.emplace(names.back(), i);
    if (!is_new)
      throw UserError(
          fmt::format("--output: the images for {} and {} would both be written to '{}.png'; predict these "
                      "inputs in separate calls, with different folders",
                      inputs.sample_id(first->second), inputs.sample_id(i), names.back()));
  }
  return names;
}

class PredictionPictures final : public ArrayWriter {
 public:
  PredictionPictures(const std::string& folder, std::vector<PictureOutput> outputs, const Dataset& inputs,
                     bool overwrite)
      : outputs_(std::move(outputs)), names_(file_names_of(inputs)) {
    for (const PictureOutput& output : outputs_) {
      folders_.push_back(outputs_.size() == 1 ? folder : (fs::path(folder) / output.name).string());
      std::error_code failure;
      fs::create_directories(folders_.back(), failure);
      if (failure)
        throw UserError(fmt::format("{}: cannot create the folder: {}", folders_.back(), failure.message()));
      reject_inputs(folders_.back(), inputs);
      reject_existing(folders_.back(), overwrite);
      remove_leftovers((fs::path(folders_.back()) / "any.png").string());
    }
  }

  void append(std::span<const View> arrays) override {
    const int64_t count = arrays[0].shape[0];
    for (int64_t i = 0; i < count; ++i, ++next_)
      for (size_t output = 0; output < outputs_.size(); ++output) write(output, arrays[output], i);
  }
  void finish() override {}

  /// Describes the images that were written. All of these files are complete, because NewFile gives a file
  /// its name only after it was written.
  std::string describe_written() const override {
    if (next_ == 0) return "; nothing was written";
    const std::string& last = names_[static_cast<size_t>(next_ - 1)];
    return fmt::format(
        "; the images of {} of {} samples were written completely, the last one to '{}.png'; use --overwrite "
        "in the next call to replace them",
        next_, names_.size(), last);
  }

 private:
  /// Throws UserError if a file to be written exists, because it may be a mask of the data set. With
  /// `overwrite`, throws only if the path leads to something other than a file, such as a folder, because
  /// only files can be replaced.
  void reject_existing(const std::string& folder, bool overwrite) const {
    for (const std::string& name : names_) {
      const std::string path = (fs::path(folder) / (name + ".png")).string();
      const FileType found = file_type(path);
      if (found == FileType::nothing || (found == FileType::file && overwrite)) continue;
      throw UserError(found == FileType::file
                          ? fmt::format("{}: this file already exists; give another --output, or use "
                                        "--overwrite to replace the file",
                                        path)
                          : fmt::format("{}: expected a file, found {}; give another --output", path,
                                        name_of_type(path)));
    }
  }

  void reject_inputs(const std::string& folder, const Dataset& inputs) const {
    if (!inputs.has_ids()) return;
    for (size_t i = 0; i < names_.size(); ++i) {
      std::error_code missing;
      const fs::path path = fs::path(folder) / (names_[i] + ".png");
      if (fs::equivalent(path, inputs.sample_id(static_cast<int64_t>(i)), missing))
        throw UserError(fmt::format("{}: this file is an input; give another --output", path.string()));
    }
  }

  /// Writes sample `i` of a batch of one output.
  void write(size_t output, const View& batch, int64_t i) const {
    const PictureOutput& form = outputs_[output];
    const int64_t pixels = form.height * form.width, first = i * pixels * form.channels;
    const auto number = [&](int64_t element) { return number_at(batch.data, batch.dtype, first + element); };
    std::vector<uint8_t> bytes;
    int64_t channels = form.channels;
    if (form.pixels == TargetPicture::classes) {
      channels = form.classes.are_gray() ? 1 : 3;
      for (int64_t pixel = 0; pixel < pixels; ++pixel) add_class(form, class_of(form, number, pixel), bytes);
    } else {
      for (int64_t element = 0; element < pixels * form.channels; ++element) {
        const double value = number(element);  // NaN becomes 0
        bytes.push_back(value > 0 ? static_cast<uint8_t>(std::lround(std::min(value, 255.0))) : uint8_t{0});
      }
    }
    const std::string png = encode_png(bytes, form.height, form.width, channels);
    const std::string name = names_[static_cast<size_t>(next_)] + ".png";
    NewFile file((fs::path(folders_[output]) / name).string(), Leftovers::kept);
    file.append(png.data(), png.size());
    file.finish();
  }

  template <class Number>
  static int64_t class_of(const PictureOutput& form, const Number& number, int64_t pixel) {
    const int64_t first = pixel * form.channels;
    if (form.channels == 1) return number(first) > form.threshold ? 1 : 0;
    int64_t best = 0;
    for (int64_t c = 1; c < form.channels; ++c)
      if (number(first + c) > number(first + best)) best = c;
    return best;
  }

  /// Appends the pixel of a class: one byte, or three if classes have colors.
  static void add_class(const PictureOutput& form, int64_t number, std::vector<uint8_t>& bytes) {
    if (form.classes.are_numbers()) return bytes.push_back(static_cast<uint8_t>(number));
    const uint32_t color = form.classes.colors[static_cast<size_t>(number)];
    if (!form.classes.are_gray()) {
      bytes.push_back(static_cast<uint8_t>(color >> 16));
      bytes.push_back(static_cast<uint8_t>(color >> 8));
    }
    bytes.push_back(static_cast<uint8_t>(color));
  }

  std::vector<PictureOutput> outputs_;
  std::vector<std::string> names_;    // names of the samples
  std::vector<std::string> folders_;  // folder of each output
  int64_t next_ = 0;                  // index of the next sample
};

}  // namespace

bool is_picture_folder(const std::string& path) {
  return path.ends_with('/') || file_type(path) == FileType::directory;
}

PictureOutput picture_output(const RunConfig& config, size_t index) {
  const Head& head = config.heads[index];
  const TensorSpec& spec = config.graph.spec(head.output);
  const Shape& shape = spec.shape;
  PictureOutput output;
  output.name = config.graph.layer_name(head.output.node);
  output.pixels = pixels_of(config, head);
  const bool has_classes = output.pixels == TargetPicture::classes;
  if (shape.rank() == 2 || shape.rank() == 3) {
    output.height = shape[0];
    output.width = shape[1];
    output.channels = shape.rank() == 3 ? shape[2] : 1;
  }
  const int64_t channels = output.channels, most = static_cast<int64_t>(MaskClasses::kMost);
  if (output.height == 0 || (has_classes ? channels > most : channels != 1 && channels != 3 && channels != 4))
    throw UserError(
        fmt::format("--output: only images can be written to a folder, but the output '{}' has the shape {} "
                    "(expected [height, width, {}]); give a file (.h5, .npy, .csv or .jsonl)",
                    output.name, shape.str(),
                    has_classes ? fmt::format("up to {} classes", most) : "1, 3 or 4 channels"));
  if (!has_classes) return output;
  if (const auto bounds = head.loss ? head.loss->target_bounds(spec) : std::nullopt;
      channels == 1 && bounds && std::isfinite(bounds->most))
    output.threshold = (bounds->least + bounds->most) / 2;
  const Reader* reader = reader_of_targets(config.dataset);
  const MaskClasses classes = reader ? reader->mask_classes() : MaskClasses();
  if (classes.colors.size() == static_cast<size_t>(std::max<int64_t>(channels, 2))) output.classes = classes;
  return output;
}

std::unique_ptr<ArrayWriter> open_prediction_pictures(const std::string& folder,
                                                      std::vector<PictureOutput> outputs,
                                                      const Dataset& inputs, bool overwrite) {
  return std::make_unique<PredictionPictures>(folder, std::move(outputs), inputs, overwrite);
}

}  // namespace dtrain
