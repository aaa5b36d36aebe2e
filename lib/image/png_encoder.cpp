// Encodes PNG with libpng's simplified API.
#include <png.h>

#include <fmt/format.h>

#include "base/error.h"
#include "image/encode.h"

namespace dtrain {

std::string encode_png(std::span<const uint8_t> pixels, int64_t height, int64_t width, int64_t channels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t bytes = file.size();
  if (png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels.data(), 0, nullptr) == 0)
    throw Error(fmt::format("cannot encode a PNG of {} x {} pixels: {}", width, height, image.message));
  file.resize(bytes);
  return file;
}

}  // namespace dtrain
