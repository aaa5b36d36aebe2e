// What HDF5 has at the head of every group and dataset: a list of messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "checkpoint/reader/image.h"

namespace dtrain {

/// The kinds of messages that matter here, by HDF5's numbers.
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

struct Message {
  MessageKind kind;
  std::span<const std::byte> data;
};

class ObjectHeader {
 public:
  /// Throws UserError where there is no object header of version 2, which is what dtrain's files have.
  ObjectHeader(Image& image, uint64_t address);

  const std::vector<Message>& messages() const { return messages_; }
  /// The first message of this kind, or null.
  const Message* find(MessageKind kind) const;

 private:
  /// Adds the messages of a part of the header; notes where others are continued.
  void read_messages(Cursor part);

  std::vector<Message> messages_;
  struct Continuation {
    uint64_t address, size;
  };
  std::vector<Continuation> continuations_;
  bool has_creation_order_ = false;
};

}  // namespace dtrain
