// Reads object headers: the list of messages at the start of every HDF5 group and dataset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/reader/image.h"

namespace dtrain {

/// The message types that are used here, with HDF5's numbers.
enum class MessageKind : uint8_t {
  nothing = 0x00,
  dataspace = 0x01,
  link_info = 0x02,
  datatype = 0x03,
  link = 0x06,
  external_files = 0x07,
  layout = 0x08,
  filters = 0x0B,
  attribute = 0x0C,
  continuation = 0x10,
  attribute_info = 0x15,
};

/// A message: one property of the object.
struct Message {
  MessageKind kind;
  std::span<const std::byte> data;
};

/// The header of an object, with all its messages. The image must outlive this object.
class ObjectHeader {
 public:
  /// Reads the object header at `address`. Throws UserError if there is none, or if its version is not 2, the
  /// version that dtrain writes.
  ObjectHeader(Image& image, uint64_t address);

  const std::vector<Message>& messages() const { return messages_; }
  /// Returns the first message of this type, or null if there is none.
  const Message* find(MessageKind kind) const;

 private:
  /// Adds the messages of one part of the header. Also stores the locations of further parts to which these
  /// messages refer.
  void read_messages(Cursor part);

  std::vector<Message> messages_;
  struct Continuation {
    uint64_t address, size;
  };
  std::vector<Continuation> continuations_;
  bool has_creation_order_ = false;
};

}  // namespace dtrain
