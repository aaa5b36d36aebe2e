#include "nn/layers/common.h"
#include "nn/layers/one_dimensional.h"
#include "nn/layers/table.h"

namespace dtrain {
namespace {

struct Padding1DOptions {
  Sides padding{1, 1};

  static const Schema<Padding1DOptions>& schema() {
    static const auto schema =
        Schema<Padding1DOptions>("Pads sequences with zeros at the start and end.")
            .example("{padding: [1, 2]}")
            .optional("padding", &Padding1DOptions::padding,
                      "number of positions that are added at each end: one number, or [before, after]")
            .positional("padding");
    return schema;
  }
};

struct Cropping1DOptions {
  Sides cropping{1, 1};

  static const Schema<Cropping1DOptions>& schema() {
    static const auto schema =
        Schema<Cropping1DOptions>("Crops sequences: removes positions at the start and end.")
            .example("{cropping: [1, 2]}")
            .optional("cropping", &Cropping1DOptions::cropping,
                      "number of positions that are removed at each end: one number, or [before, after]")
            .positional("cropping");
    return schema;
  }
};

struct UpSampling1DOptions {
  int64_t size = 2;

  static const Schema<UpSampling1DOptions>& schema() {
    static const auto schema =
        Schema<UpSampling1DOptions>("Repeats each position of a sequence.")
            .example("{size: 2}")
            .optional("size", &UpSampling1DOptions::size, "number of times to repeat each position", extent())
            .positional("size");
    return schema;
  }
};

template <class Options>
void add(Registry<Layer>& table, const std::string& name, const ImageOptions& image) {
  table.add_with(name, Options::schema(), [image](const Options& options, const ConfigNode&) {
    return layer_of_sequences(image, Options::schema().write(options));
  });
}

}  // namespace

void add_shape1d(Registry<Layer>& table) {
  add<Padding1DOptions>(table, "zero_padding1d", {"zero_padding2d", {}, {"padding"}});
  add<Cropping1DOptions>(table, "cropping1d", {"cropping2d", {}, {"cropping"}});
  add<UpSampling1DOptions>(table, "upsampling1d", {"upsampling2d", {"size"}, {}});
}

}  // namespace dtrain
