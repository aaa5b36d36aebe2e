// Operations for which a real GPU's cuDNN may have no engine. Therefore they are tested only in the
// emulation.
#include <cmath>
#include <cstdlib>

#include "base/error.h"
#include "ops/convolutions.h"

namespace dtrain::test {
namespace {

/// Computes the gradient of a filter with one channel. All elements of the images have the value `src`, and
/// all elements of the gradients have the value `diff_dst`.
Floats filter_gradient(const Device& device, const ConvolutionSpec& spec, float src, float diff_dst) {
  const int64_t weights = spec.kernel_height * spec.kernel_width * spec.channels * spec.filters;
  const auto convolution = device.ops().convolution(spec);
  const auto scratch = device.memory(convolution->scratch_bytes());
  const TypedArray images =
      device.typed(Floats(static_cast<size_t>(spec.batch * spec.height * spec.width * spec.channels), src));
  const TypedArray gradients = device.typed(Floats(
      static_cast<size_t>(spec.batch * spec.out_height() * spec.out_width() * spec.filters), diff_dst));
  const auto diff_kernel = device.floats(static_cast<size_t>(weights));
  convolution->backward_filter(images.data(), gradients.data(), diff_kernel.data(), nullptr, scratch.data());
  return diff_kernel.read();
}

/// Sets DTRAIN_FILTER_GRADIENT for the lifetime of the object.
struct Wanted {
  explicit Wanted(const char* value) {
    if (value) setenv("DTRAIN_FILTER_GRADIENT", value, 1);
  }
  ~Wanted() { unsetenv("DTRAIN_FILTER_GRADIENT"); }
  Wanted(const Wanted&) = delete;
  Wanted& operator=(const Wanted&) = delete;
};

ConvolutionSpec spec_of_one_channel() {
  ConvolutionSpec spec = spec_of(9, 1, 1, 3, 1, 1, {});
  spec.training = true;
  return spec;
}

}  // namespace

TEST_SUITE("gpu") {
  TEST_CASE(
      "filter gradients use float32 for float16, the compute type for bfloat16, or the requested type") {
    struct Row {
      DType type;
      const char* wanted;
      bool exact;
    };
    const ConvolutionSpec spec = spec_of_one_channel();
    // The sum is larger than the largest float16. It also has too many digits for both 16-bit types, so it
    // shows the type of the gradients.
    const double products = static_cast<double>(spec.batch * spec.out_height() * spec.out_width());
    const auto sum = static_cast<float>(products * 32 * 33);
    for (const Row& row : {Row{DType::bfloat16, nullptr, false}, Row{DType::bfloat16, "compute", false},
                           Row{DType::bfloat16, "float32", true}, Row{DType::float16, nullptr, true},
                           Row{DType::float16, "compute", false}, Row{DType::float16, "float32", true}}) {
      CAPTURE(static_cast<int>(row.type));
      const Wanted wanted(row.wanted);
      const auto device = gpu_device({.type = row.type});
      const Floats found = filter_gradient(*device, spec, 32, 33);
      CHECK(found == Floats(9, row.exact ? sum : rounded(sum, format_of(row.type))));
      const std::string note = device->ops().convolution(spec)->remarks().note;
      CHECK(note.find(row.exact ? "in float32; set the environment variable DTRAIN_FILTER_GRADIENT=compute"
                                : "16; set the environment variable DTRAIN_FILTER_GRADIENT=float32") !=
            std::string::npos);
    }
  }

  TEST_CASE("if cuDNN has no engine for the preferred type of filter gradients, the other type is used") {
    ConvolutionSpec spec = spec_of_one_channel();
    spec.kernel_height = 1;  // in the emulation, engines for float32 gradients support only square kernels
    const auto device = gpu_device({.type = DType::float16});
    CHECK(filter_gradient(*device, spec, 1, 1)[0] == static_cast<float>(spec.batch * 9 * 9));
  }

  TEST_CASE("an unknown type of filter gradients is an error") {
    const Wanted wanted("float64");
    const auto device = gpu_device({.type = DType::bfloat16});
    CHECK_THROWS_WITH_AS(
        device->ops().convolution(spec_of_one_channel()),
        "DTRAIN_FILTER_GRADIENT in the environment: expected 'compute' or 'float32', found 'float64'",
        UserError);
  }
}

}  // namespace dtrain::test
