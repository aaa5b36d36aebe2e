#include "device/device.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace dtrain {

std::string DeviceId::str() const {
  return fmt::format("{}:{}", kind == Kind::cpu ? "cpu" : "gpu", index);
}

std::optional<DeviceId> DeviceId::parse(std::string_view text) {
  DeviceId id;
  if (text.starts_with("gpu:")) {
    id.kind = Kind::gpu;
  } else if (!text.starts_with("cpu:")) {
    return std::nullopt;
  }
  const std::string_view digits = text.substr(4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id.index);
  // Only what str() writes: no sign, no leading zero.
  if (error != std::errc() || id.index < 0 || id.str() != text) return std::nullopt;
  return id;
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      release_(std::exchange(other.release_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer taken(std::move(other));
  std::swap(data_, taken.data_);
  std::swap(bytes_, taken.bytes_);
  std::swap(release_, taken.release_);
  return *this;
}

Buffer::~Buffer() {
  if (data_) release_(data_, bytes_);
}

}  // namespace dtrain
