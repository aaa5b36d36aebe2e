// Decodes JPEG with libjpeg-turbo.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

// jerror.h depends on definitions in jpeglib.h.
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "base/error.h"
#include "image/exif.h"
#include "image/picture_rows.h"

namespace dtrain {

namespace {

/// libjpeg can downscale an image while it decodes it. The downscaled image must be at least this many times
/// as large as the requested size. The blur and the aliasing of this downscaling are then hardly visible
/// after the final resize.
constexpr double kLeastOversize = 1.25;
// Maximum number of scans of a progressive image. The fuzzers of libjpeg-turbo use the same limit.
constexpr int kMostScans = 500;

/// Error handler. libjpeg reports errors through a callback that must not return. The callback therefore
/// jumps back to the function that called libjpeg (longjmp).
struct JpegErrors : jpeg_error_mgr {
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave(j_common_ptr decoder) {
  auto* errors = static_cast<JpegErrors*>(decoder->err);
  errors->format_message(decoder, errors->message);
  longjmp(errors->jump, 1);
}

/// Treats warnings about lost pixels as errors. Ignores warnings about violations of the format that do not
/// affect pixels.
void take_message(j_common_ptr decoder, int level) {
  if (level >= 0) return;
  switch (decoder->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_ARITH_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_BOGUS_PROGRESSION:
      leave(decoder);
    default:
      return;
  }
}

/// Rejects an image with too many scans. Decoding a scan takes as long as decoding a whole image, so a small
/// file could take a very long time.
void check_scans(j_common_ptr decoder) {
  if (reinterpret_cast<j_decompress_ptr>(decoder)->input_scan_number <= kMostScans) return;
  auto* errors = static_cast<JpegErrors*>(decoder->err);
  std::snprintf(errors->message, sizeof errors->message, "more than %d scans", kMostScans);
  longjmp(errors->jump, 1);
}

/// The rows of a JPEG file. libjpeg may downscale the image while it decodes it.
class JpegRows final : public PictureRows {
 public:
  JpegRows(std::span<const uint8_t> bytes, size_t file_bytes) {
    decoder_.err = jpeg_std_error(&errors_);
    errors_.error_exit = leave;
    errors_.emit_message = take_message;
    errors_.output_message = [](j_common_ptr) {};
    try {
      guarded([&] {
        jpeg_create_decompress(&decoder_);
        progress_.progress_monitor = check_scans;
        decoder_.progress = &progress_;
        jpeg_mem_src(&decoder_, bytes.data(), bytes.size());
        jpeg_save_markers(&decoder_, JPEG_APP0 + 1, 0xFFFF);
        jpeg_read_header(&decoder_, TRUE);
      });
      // A block of 8 x 8 pixels takes at least one bit, so a byte contains at most 512 pixels.
      gray_ = decoder_.jpeg_color_space == JCS_GRAYSCALE;
      set_full_size(decoder_.image_width, decoder_.image_height, file_bytes, 512);
    } catch (...) {
      jpeg_destroy_decompress(&decoder_);
      throw;
    }
    find_orientation();
  }
  ~JpegRows() override { jpeg_destroy_decompress(&decoder_); }
  JpegRows(const JpegRows&) = delete;
  JpegRows& operator=(const JpegRows&) = delete;

  void start(int channels, double wanted_scale) override {
    choose_colors(channels);
    decoder_.scale_denom = 8;
    decoder_.scale_num = 1;
    while (decoder_.scale_num < 8 && decoder_.scale_num < 8 * kLeastOversize * wanted_scale)
      decoder_.scale_num *= 2;
    scale_ = decoder_.scale_num / 8.0;
    // If the image is later shrunk to half its decoded size or less, interpolating the subsampled color
    // channels would make no difference.
    decoder_.do_fancy_upsampling = scale_ < 2 * wanted_scale ? TRUE : FALSE;
    guarded([&] { jpeg_start_decompress(&decoder_); });
    width_ = decoder_.output_width;
    height_ = decoder_.output_height;
    if (is_cmyk()) cmyk_.resize(static_cast<size_t>(width_) * 4);
  }

  void read(uint8_t* row) override {
    JSAMPROW target = is_cmyk() ? cmyk_.data() : row;
    guarded([&] { jpeg_read_scanlines(&decoder_, &target, 1); });
    if (is_cmyk()) from_cmyk(row);
  }

  void finish() override {
    guarded([&] { jpeg_finish_decompress(&decoder_); });
  }

 private:
  /// Runs `call`, which calls libjpeg. libjpeg may leave `call` with longjmp, so `call` must not hold objects
  /// with destructors.
  template <class Call>
  void guarded(Call call) {
    if (setjmp(errors_.jump) != 0)
      throw UserError(
          fmt::format("expected a JPEG that can be decoded, but this JPEG is damaged or unsupported: {}",
                      errors_.message));
    call();
  }

  /// Reads the orientation from EXIF or, if EXIF does not contain it, from XMP.
  void find_orientation() {
    using namespace std::string_view_literals;
    constexpr std::string_view kExif = "Exif\0\0"sv, kXmp = "http://ns.adobe.com/xap/1.0/\0"sv;
    int of_exif = 0, of_xmp = 0;
    for (const jpeg_marker_struct* marker = decoder_.marker_list; marker; marker = marker->next) {
      const std::span<const uint8_t> data(marker->data, marker->data_length);
      const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
      if (text.starts_with(kExif) && of_exif == 0)
        of_exif = exif_orientation(data.subspan(kExif.size()));
      else if (text.starts_with(kXmp) && of_xmp == 0)
        of_xmp = xmp_orientation(text.substr(kXmp.size()));
    }
    if (const int found = of_exif != 0 ? of_exif : of_xmp; found != 0) orientation_ = found;
  }

  bool is_cmyk() const { return decoder_.out_color_space == JCS_CMYK; }

  void choose_colors(int channels) {
    const bool gray_file = decoder_.jpeg_color_space == JCS_GRAYSCALE;
    if (decoder_.jpeg_color_space == JCS_CMYK || decoder_.jpeg_color_space == JCS_YCCK) {
      decoder_.out_color_space = JCS_CMYK;
      channels_ = 3;
    } else if (channels == 1 || gray_file) {
      decoder_.out_color_space = JCS_GRAYSCALE;
      channels_ = 1;
    } else if (decoder_.jpeg_color_space == JCS_YCbCr || decoder_.jpeg_color_space == JCS_RGB) {
      decoder_.out_color_space = JCS_RGB;
      channels_ = 3;
    } else {
      throw UserError(fmt::format(
          "expected a grayscale, color or CMYK JPEG, but found one with {} components in an unknown "
          "color space",
          decoder_.num_components));
    }
  }

  /// Converts CMYK to RGB. Adobe programs store inverted ink values; their files are recognized by the Adobe
  /// marker. Other programs store the amount of ink.
  void from_cmyk(uint8_t* row) const {
    const unsigned flip = decoder_.saw_Adobe_marker ? 0 : 255;
    for (size_t i = 0; i < static_cast<size_t>(width_); ++i)
      for (size_t c = 0; c < 3; ++c)
        row[3 * i + c] =
            static_cast<uint8_t>(((cmyk_[4 * i + c] ^ flip) * (cmyk_[4 * i + 3] ^ flip) + 127) / 255);
  }

  JpegErrors errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct decoder_{};
  std::vector<uint8_t> cmyk_;
};

}  // namespace

std::unique_ptr<PictureRows> open_jpeg(std::span<const uint8_t> bytes, size_t file_bytes) {
  return std::make_unique<JpegRows>(bytes, file_bytes);
}

}  // namespace dtrain
