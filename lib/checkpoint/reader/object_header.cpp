#include "checkpoint/reader/object_header.h"

#include <fmt/format.h>

namespace dtrain {

namespace {
constexpr std::string_view kHead = "OHDR", kContinued = "OCHK";
// Size of the checksum of an object header. This checksum is not verified, because dtrain verifies the
// checksum of the whole file.
constexpr size_t kChecksum = 4;
constexpr uint8_t kSizeWidth = 0x03, kCreationOrder = 0x04, kPhaseChange = 0x10, kTimes = 0x20;  // flags
constexpr uint8_t kShared = 0x02;  // message flag: the message is stored elsewhere
}  // namespace

ObjectHeader::ObjectHeader(Image& image, uint64_t address) {
  constexpr size_t kPrefix = 6;  // signature, version, flags
  Cursor prefix(image.read_block(kHead, address, kPrefix), "an object header");
  prefix.expect(2, "version");
  const uint8_t flags = prefix.byte();
  has_creation_order_ = (flags & kCreationOrder) != 0;
  const size_t times = (flags & kTimes) ? 16 : 0, phase_change = (flags & kPhaseChange) ? 4 : 0;
  const size_t width = size_t{1} << (flags & kSizeWidth);
  uint64_t at = address + kPrefix + times + phase_change;
  const uint64_t size = Cursor(image.read(at, width), "an object header").number(width);
  at += width;
  read_messages(Cursor(image.read(at, size), "an object header"));
  for (size_t i = 0; i < continuations_.size(); ++i) {
    const auto [where, length] = continuations_[i];
    Cursor part(image.read_block(kContinued, where, length), "an object header's continuation");
    if (part.left() < kChecksum)
      refuse("an HDF5 object header",
             fmt::format("a continuation block of at least {} bytes, the size of its checksum", kChecksum),
             fmt::format("a block of {} bytes", part.left()));
    read_messages(Cursor(part.take(part.left() - kChecksum), "an object header's continuation"));
  }
}

void ObjectHeader::read_messages(Cursor part) {
  const size_t prefix = has_creation_order_ ? 6 : 4;
  while (part.left() >= prefix) {  // a remainder that is too short for a message is a gap
    const auto kind = static_cast<MessageKind>(part.byte());
    const uint64_t size = part.number(2);
    const uint8_t flags = part.byte();
    if (has_creation_order_) part.skip(2);
    const auto data = part.take(size);
    if (kind == MessageKind::nothing) continue;
    if (flags & kShared)
      refuse("an HDF5 object header", "messages that are stored in the header itself",
             "a shared message, which is stored elsewhere");
    if (kind != MessageKind::continuation) {
      messages_.push_back({kind, data});
      continue;
    }
    Cursor continuation(data, "an object header's continuation");
    const uint64_t address = continuation.address();
    continuations_.push_back({address, continuation.number(8)});
  }
}

const Message* ObjectHeader::find(MessageKind kind) const {
  for (const Message& message : messages_)
    if (message.kind == kind) return &message;
  return nullptr;
}

}  // namespace dtrain
