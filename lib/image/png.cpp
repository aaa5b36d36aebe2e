// Decodes PNG with libpng.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <png.h>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "image/exif.h"
#include "image/picture_rows.h"

namespace dtrain {

namespace {

constexpr int64_t kMostDeflated = 1032;  // maximum bytes that one byte of deflate data can expand to

/// The input and the last error. libpng reports errors through a callback that must not return: the callback
/// jumps back to the caller of libpng.
struct PngState {
  std::span<const uint8_t> bytes;
  size_t place = 0;
  jmp_buf jump;
  char message[160] = "";
};

[[noreturn]] void leave(png_structp png, png_const_charp message) {
  auto* state = static_cast<PngState*>(png_get_error_ptr(png));
  std::snprintf(state->message, sizeof state->message, "%s", message);
  longjmp(state->jump, 1);
}

void take_bytes(png_structp png, png_bytep dst, size_t count) {
  auto* state = static_cast<PngState*>(png_get_io_ptr(png));
  if (state->bytes.size() - state->place < count) png_error(png, "the file is truncated");
  std::memcpy(dst, state->bytes.data() + state->place, count);
  state->place += count;
}

/// The rows of a PNG file. If the image is interlaced, all rows are decoded at once.
class PngRows final : public PictureRows {
 public:
  PngRows(std::span<const uint8_t> bytes, size_t file_bytes) : file_bytes_(file_bytes) {
    state_.bytes = bytes;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state_, leave, [](png_structp, png_const_charp) {});
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (!info_) {
      destroy();
      throw std::bad_alloc();
    }
    try {
      guarded([&] {
        png_set_read_fn(png_, &state_, take_bytes);
        // The size limits of libpng are disabled because the size is checked below, with a better message.
        png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
        png_set_chunk_malloc_max(png_, 1 << 20);
        pass_over_chunks();
        png_read_info(png_, info_);
      });
      gray_ = (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) == 0;
      has_16_bits_ = png_get_bit_depth(png_, info_) == 16;
      set_full_size(png_get_image_width(png_, info_), png_get_image_height(png_, info_), file_bytes,
                    8 * kMostDeflated);
      check_unpacked_size();
      find_orientation();
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~PngRows() override { destroy(); }
  PngRows(const PngRows&) = delete;
  PngRows& operator=(const PngRows&) = delete;

  void start(int, double) override {
    guarded([&] {
      // Converts palettes to RGB, values of less than 8 bits to 8 bits, and tRNS chunks to an alpha channel.
      png_set_expand(png_);
      png_set_strip_16(png_);  // keeps only the high byte, like tf.io.decode_png
      passes_ = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    begin_rows();
  }

  void start_as_stored() override {
    const int type = png_get_color_type(png_, info_);
    if (type != PNG_COLOR_TYPE_PALETTE && (type & PNG_COLOR_MASK_COLOR) != 0)
      throw UserError(
          "expected one value per pixel (a palette or gray levels), but found colors; set 'classes' to a "
          "list "
          "with the color of each class");
    guarded([&] {
      png_set_packing(png_);
      passes_ = png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    begin_rows();
  }

  void read(uint8_t* row) override {
    const auto bytes = static_cast<size_t>(width_ * channels_);
    if (passes_ > 1)
      std::memcpy(row, pixels_.data() + static_cast<size_t>(next_row_++) * bytes, bytes);
    else
      guarded([&] { png_read_row(png_, row, nullptr); });
  }

  void finish() override {
    guarded([&] { png_read_end(png_, nullptr); });
  }

 private:
  /// Runs `call`, which calls libpng. libpng may leave `call` with longjmp, so `call` must not hold objects
  /// with destructors.
  template <class Call>
  void guarded(Call call) {
    if (setjmp(state_.jump) != 0)
      throw UserError(fmt::format("expected an intact PNG, but this PNG is damaged: {}", state_.message));
    call();
  }

  /// Stores the size and the channels of the rows. Must be called after the conversions have been set.
  void begin_rows() {
    channels_ = png_get_channels(png_, info_);
    width_ = full_width();
    height_ = full_height();
    if (passes_ > 1) read_all_passes();
  }

  void destroy() { png_destroy_read_struct(&png_, &info_, nullptr); }

  /// Skips chunks that do not affect pixels, without decompressing them. Compressed texts and color profiles
  /// are skipped because they could be decompression bombs.
  void pass_over_chunks() {
    static const char names[] =
        "bKGD\0cHRM\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0sBIT\0sCAL\0sPLT\0sRGB\0sTER\0tEXt\0tIME\0zTX"
        "t";
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, 0);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, reinterpret_cast<png_const_bytep>(names),
                                sizeof names / 5);
  }

  void check_unpacked_size() const {
    const int64_t bits = int64_t{png_get_channels(png_, info_)} * png_get_bit_depth(png_, info_);
    const int64_t bytes = (full_width() * bits + 7) / 8 * full_height();
    if (bytes / kMostDeflated > static_cast<int64_t>(file_bytes_))
      throw UserError(
          fmt::format("expected {} bytes of uncompressed pixels as in the header, but the file has only {} "
                      "bytes, too few "
                      "even with the highest possible compression",
                      bytes, file_bytes_));
  }

  void find_orientation() {
#ifdef PNG_eXIf_SUPPORTED
    png_bytep exif = nullptr;
    png_uint_32 bytes = 0;
    if (png_get_eXIf_1(png_, info_, &bytes, &exif) != 0)
      orientation_ = std::max(1, exif_orientation({exif, bytes}));
#endif
  }

  /// Decodes an interlaced image. Each pass contains some pixels of all rows, so all passes must be decoded
  /// before the first row is complete.
  void read_all_passes() {
    const auto bytes = static_cast<size_t>(width_ * channels_);
    pixels_.resize(bytes * static_cast<size_t>(height_));
    guarded([&] {
      for (int pass = 0; pass < passes_; ++pass)
        for (int64_t row = 0; row < height_; ++row)
          png_read_row(png_, pixels_.data() + static_cast<size_t>(row) * bytes, nullptr);
    });
  }

  PngState state_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  size_t file_bytes_;
  int passes_ = 1;
  int64_t next_row_ = 0;
  std::vector<uint8_t> pixels_;  // pixels of an interlaced image
};

}  // namespace

std::unique_ptr<PictureRows> open_png(std::span<const uint8_t> bytes, size_t file_bytes) {
  return std::make_unique<PngRows>(bytes, file_bytes);
}

}  // namespace dtrain
