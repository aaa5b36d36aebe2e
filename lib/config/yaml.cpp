#include "config/yaml.h"

#include <algorithm>
#include <istream>
#include <map>
#include <streambuf>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "config/byte_escapes.h"
#include "config/text.h"

namespace dtrain {

namespace {

constexpr int kMaxDepth = 100;
constexpr size_t kMaxNodes = 1'000'000;
constexpr size_t kMaxKeyBytes = 1024;  // what YAML allows a key that is written in one line

/// A finished value, with what its aliases will cost.
struct Subtree {
  ConfigNode node;
  size_t nodes = 1;
  int height = 1;
};

/// Builds the tree from the parser's events. An alias shares its anchor's finished subtree. Mistakes after
/// which the rest can still be read are reported, others thrown as the parser's own exception.
class Builder final : public YAML::EventHandler {
 public:
  Builder(const ByteEscapes& escapes, Mark place, Diagnostics& diagnostics)
      : escapes_(escapes), text_(escapes.text()), place_(std::move(place)), diagnostics_(diagnostics) {}

  const ConfigNode& root() const { return root_.node; }
  bool found_anything() const { return found_; }

  /// For a mistake in the syntax: where the bracket stands in which it was found.
  std::string context() const {
    if (stack_.empty() || !stack_.back().in_brackets || place_.line == 0) return {};
    return fmt::format(" (in the brackets that open at {})", place(stack_.back().mark).str());
  }

  Mark place(const YAML::Mark& mark) const {
    return place_.line == 0 || mark.is_null() ? place_ : Mark{place_.file, mark.line + 1, mark.column + 1};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (std::exchange(started_, true))
      throw YAML::ParserException(mark, "expected one document, found another");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto at = static_cast<size_t>(mark.pos);
    const bool written =
        mark.pos >= 0 && at < text_.size() && (text_[at] == '~' || text_[at] == 'n' || text_[at] == 'N');
    if (stack_.empty()) {
      found_ = written;
    } else if (!written &&
               stack_.back().key) {  // nothing after a key: it is the key that a message should point at
      return add({ConfigNode::null(stack_.back().key->mark())}, mark, anchor);
    }
    add({ConfigNode::null(place(mark))}, mark, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    found_ = true;
    if (tag != "?" && tag != "!") refuse_tag(mark, tag);
    add({ConfigNode::scalar(escapes_.restore(value), tag != "?", place(mark))}, mark, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      throw YAML::ParserException(mark, "an alias within the value that it stands for");
    add(found->second, mark, YAML::NullAnchor, found->second.nodes);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, false);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, true);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  /// A collection that is still being read.
  struct Frame {
    YAML::Mark mark;
    YAML::anchor_t anchor;
    bool is_mapping, in_brackets;
    std::vector<ConfigNode> items;
    std::vector<ConfigNode::Entry> entries;
    std::optional<ConfigNode> key;
    std::unordered_set<std::string> keys;
    size_t nodes = 1;
    int height = 1;
  };

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style, bool is_mapping) {
    found_ = true;
    if (!tag.empty() && tag != "?") refuse_tag(mark, tag);
    if (stack_.size() >= kMaxDepth) throw YAML::ParserException(mark, too_deep());
    if (!stack_.empty() && stack_.back().is_mapping && !stack_.back().key)
      throw YAML::ParserException(
          mark, "expected a key that is a scalar, found a collection, or a bracket without its end");
    Frame frame;
    frame.mark = mark;
    frame.anchor = anchor;
    frame.is_mapping = is_mapping;
    frame.in_brackets = style == YAML::EmitterStyle::Flow;
    stack_.push_back(std::move(frame));
  }

  void close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    const Mark mark = place(frame.mark);
    Subtree tree{frame.is_mapping ? ConfigNode::mapping(std::move(frame.entries), mark)
                                  : ConfigNode::sequence(std::move(frame.items), mark),
                 frame.nodes, frame.height};
    add(std::move(tree), frame.mark, frame.anchor);
  }

  /// `cost`: how many values this is beyond those that were added for its own parts.
  void add(Subtree tree, const YAML::Mark& mark, YAML::anchor_t anchor, size_t cost = 1) {
    nodes_ += cost;
    if (nodes_ > kMaxNodes)
      throw YAML::ParserException(mark,
                                  fmt::format("more than {} values, aliases counted in full", kMaxNodes));
    if (anchor != YAML::NullAnchor) anchors_[anchor] = tree;
    if (stack_.empty()) {
      root_ = std::move(tree);
      return;
    }
    Frame& frame = stack_.back();
    frame.nodes += tree.nodes;
    frame.height = std::max(frame.height, tree.height + 1);
    if (static_cast<int>(stack_.size()) + tree.height > kMaxDepth)
      throw YAML::ParserException(mark, too_deep());

    if (!frame.is_mapping) {
      frame.items.push_back(std::move(tree.node));
    } else if (frame.key) {
      frame.entries.emplace_back(*std::exchange(frame.key, std::nullopt), std::move(tree.node));
    } else {
      take_key(frame, std::move(tree.node), mark);
    }
  }

  void take_key(Frame& frame, ConfigNode key, const YAML::Mark& mark) {
    if (!key.is_scalar())
      throw YAML::ParserException(mark, "expected a key that is a scalar, found " + key.describe());
    if (key.text().size() > kMaxKeyBytes)
      throw YAML::ParserException(mark, fmt::format("a key of more than {} bytes", kMaxKeyBytes));
    if (key.text() == "<<" && !key.quoted())
      diagnostics_.error(place(mark), "merge keys (<<) are not supported; write the keys out");
    else if (!frame.keys.insert(key.text()).second)
      diagnostics_.error(place(mark), fmt::format("duplicate key {}", key.describe()));
    frame.key = std::move(key);
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    diagnostics_.error(place(mark), fmt::format("tags are not supported, found '{}'", tag));
  }

  static std::string too_deep() { return fmt::format("nested deeper than {} levels", kMaxDepth); }

  const ByteEscapes& escapes_;
  std::string_view text_;
  Mark place_;
  Diagnostics& diagnostics_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Subtree> anchors_;
  Subtree root_;
  size_t nodes_ = 0;
  bool started_ = false, found_ = false;
};

/// Reads from a string that somebody else owns.
class ViewBuffer final : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* first = const_cast<char*>(text.data());  // a get area is never written to
    setg(first, first, first + text.size());
  }
};

}  // namespace

ConfigNode parse_yaml_at(std::string_view text, const Mark& place, Diagnostics& diagnostics) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const auto at = [&](int line, int column) {
    return place.line == 0 ? place : Mark{place.file, line, column};
  };
  if (const auto mistake = find_text_mistake(text)) {
    diagnostics.error(at(mistake->line, mistake->column), mistake->message);
    return {};
  }
  const size_t before = diagnostics.count();
  const ByteEscapes escapes(text);
  Builder builder(escapes, place, diagnostics);
  try {
    ViewBuffer buffer(escapes.text());
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    if (!builder.found_anything()) diagnostics.error(at(1, 1), "expected a YAML document, found nothing");
  } catch (const YAML::Exception& mistake) {
    const Mark mark = mistake.mark.is_null() ? at(1, 1) : builder.place(mistake.mark);
    diagnostics.error(mark, mistake.msg + builder.context());
  }
  return diagnostics.count() == before ? builder.root() : ConfigNode();
}

ConfigNode parse_yaml(std::string_view text, const std::string& file_name, Diagnostics& diagnostics) {
  return parse_yaml_at(text, {std::make_shared<const std::string>(file_name), 1, 1}, diagnostics);
}

}  // namespace dtrain
