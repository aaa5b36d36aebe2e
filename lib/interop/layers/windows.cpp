#include "interop/layers/windows.h"

#include <algorithm>

namespace dtrain {

namespace {

Window window_with(const Json& options, const char* size) {
  Window window;
  window.size = size_of(options.at(size));
  window.strides = options.at("strides").is_null() ? window.size : size_of(options.at("strides"));
  window.border = border_of(options);
  return window;
}

}  // namespace

Size2 size_of(const Json& written) {
  if (written.is_array()) return {written.items()[0].as_int(), written.items()[1].as_int()};
  return {written.as_int(), written.as_int()};
}

Border border_of(const Json& options) {
  const std::string& name = options.at("padding").as_string();
  return name == "same" ? Border::same : name == "causal" ? Border::causal : Border::valid;
}

Padding2 sides_of(const Json& written) {
  const Json::Array &rows = written.items()[0].items(), &columns = written.items()[1].items();
  return {rows[0].as_int(), rows[1].as_int(), columns[0].as_int(), columns[1].as_int()};
}

Window convolution_window(const Json& options) {
  Window window = window_with(options, "kernel_size");
  window.dilation = size_of(options.at("dilation_rate"));
  return window;
}

Window pooling_window(const Json& options) {
  return window_with(options, "pool_size");
}

TransposePadding transpose_padding(const Window& window, const Shape& input, const Shape& output) {
  TransposePadding result;
  result.cut = padding_of(window, output);
  const Size2 size = spread(window);
  const auto settle = [](int64_t whole, int64_t wanted, int64_t before, int64_t& after, int64_t& extra) {
    const int64_t left = whole - before - wanted;
    after = std::max<int64_t>(left, 0);
    extra = std::max<int64_t>(-left, 0);
  };
  settle((input[0] - 1) * window.strides.height + size.height, output[0], result.cut.top, result.cut.bottom,
         result.extra.height);
  settle((input[1] - 1) * window.strides.width + size.width, output[1], result.cut.left, result.cut.right,
         result.extra.width);
  return result;
}

}  // namespace dtrain
