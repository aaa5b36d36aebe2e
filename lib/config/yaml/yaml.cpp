#include "config/yaml/yaml.h"

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

#include "config/yaml/byte_escapes.h"
#include "config/yaml/text.h"

namespace dtrain {

namespace {

constexpr int kMaxDepth = 100;
constexpr size_t kMaxNodes = 1'000'000;
constexpr size_t kMaxKeyBytes = 1024;  // YAML's limit for keys on one line

/// A finished value. Its size and height are stored to check the limits when an alias refers to it.
struct Subtree {
  ConfigNode node;
  size_t nodes = 1;
  int height = 1;
};

/// Builds the tree from the parser's events. An alias shares the subtree of its anchor. Errors after which
/// parsing can continue are reported. For other errors, throws the parser's own exception.
class Builder final : public YAML::EventHandler {
 public:
  /// If `is_fixed` is true, all values and errors have the mark `place`. Otherwise their marks are locations
  /// in the file of `place`.
  Builder(const ByteEscapes& escapes, Mark place, bool is_fixed, Diagnostics& diagnostics)
      : escapes_(escapes),
        text_(escapes.text()),
        place_(std::move(place)),
        is_fixed_(is_fixed),
        diagnostics_(diagnostics) {}

  const ConfigNode& root() const { return root_.node; }
  bool found_anything() const { return found_; }

  /// Returns a text to append to a syntax error inside brackets: the location of the opening bracket. Returns
  /// "" if the error is outside brackets.
  std::string context() const {
    if (stack_.empty() || !stack_.back().in_brackets || is_fixed_) return {};
    const YAML::Mark& open = stack_.back().mark;
    const bool has_variable =
        text_.find("${", static_cast<size_t>(std::max(open.pos, 0))) != std::string_view::npos;
    return fmt::format(" (in the brackets opened at {}{})", place(open).str(),
                       has_variable ? "; in brackets ${...} must be quoted" : "");
  }

  /// Returns the start of the last quoted scalar if it spans several lines and ends in line `line`; otherwise
  /// a null mark. Such a scalar is suspicious: if its closing quotation mark is missing, it ends at the
  /// opening quotation mark of the next quoted scalar.
  YAML::Mark quoted_up_to(int line) const {
    return quote_end_line_ == line ? quote_ : YAML::Mark::null_mark();
  }

  bool has_unclosed_quote() const { return is_unclosed_; }

  Mark place(const YAML::Mark& mark) const {
    return is_fixed_ || mark.is_null() ? place_ : Mark{place_.file, mark.line + 1, mark.column + 1};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (std::exchange(started_, true))
      throw YAML::ParserException(mark, "expected one YAML document, found two");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto at = static_cast<size_t>(mark.pos);
    const bool written =
        mark.pos >= 0 && at < text_.size() && (text_[at] == '~' || text_[at] == 'n' || text_[at] == 'N');
    if (stack_.empty()) {
      found_ = written;
      // The value of the key is missing, so messages should point at the key.
    } else if (!written && stack_.back().key) {
      return add({ConfigNode::null(stack_.back().key->mark())}, mark, anchor);
    }
    add({ConfigNode::null(place(mark))}, mark, anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    found_ = true;
    if (tag != "?" && tag != "!") reject_tag(mark, tag);
    if (tag == "!") check_quotes(mark);
    add({ConfigNode::scalar(escapes_.restore(value), tag != "?", place(mark))}, mark, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end())
      throw YAML::ParserException(mark, "the alias refers to an anchor whose value contains the alias");
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
  /// A collection that is being read.
  struct Frame {
    YAML::Mark mark;
    YAML::anchor_t anchor;
    bool is_mapping, in_brackets;
    std::vector<ConfigNode> items;
    std::vector<ConfigNode::Entry> entries;
    std::vector<ConfigNode> merged;  // the mappings given by merge keys (<<)
    std::optional<ConfigNode> key;
    std::unordered_set<std::string> keys;
    size_t nodes = 1;
    int height = 1;
  };

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style, bool is_mapping) {
    found_ = true;
    if (!tag.empty() && tag != "?") reject_tag(mark, tag);
    if (stack_.size() >= kMaxDepth) throw YAML::ParserException(mark, too_deep());
    if (!stack_.empty() && stack_.back().is_mapping && !stack_.back().key)
      throw YAML::ParserException(
          mark, "expected a single value as the key, found a list, a mapping or an unclosed bracket");
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
    if (!frame.merged.empty()) merge(frame);
    Subtree tree{frame.is_mapping ? ConfigNode::mapping(std::move(frame.entries), mark)
                                  : ConfigNode::sequence(std::move(frame.items), mark),
                 frame.nodes, frame.height};
    add(std::move(tree), frame.mark, frame.anchor);
  }

  /// Adds a finished value to the collection that contains it. `cost` is the number of values in the tree
  /// that `nodes_` does not yet include.
  void add(Subtree tree, const YAML::Mark& mark, YAML::anchor_t anchor, size_t cost = 1) {
    nodes_ += cost;
    if (nodes_ > kMaxNodes)
      throw YAML::ParserException(
          mark,
          fmt::format("expected at most {} values (expanded aliases are counted), found more", kMaxNodes));
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
    } else if (frame.key && is_merge(*frame.key)) {
      frame.key.reset();
      take_merged(frame, tree.node);
    } else if (frame.key) {
      frame.entries.emplace_back(*std::exchange(frame.key, std::nullopt), std::move(tree.node));
    } else {
      take_key(frame, std::move(tree.node), mark);
    }
  }

  void take_key(Frame& frame, ConfigNode key, const YAML::Mark& mark) {
    if (!key.is_scalar())
      throw YAML::ParserException(mark, "expected a single value as the key, found " + key.describe());
    if (key.text().size() > kMaxKeyBytes)
      throw YAML::ParserException(mark, fmt::format("expected a key of at most {} bytes, found {} bytes",
                                                    kMaxKeyBytes, key.text().size()));
    if (!frame.keys.insert(key.text()).second)
      diagnostics_.error(place(mark), fmt::format("duplicate key {}", key.describe()));
    frame.key = std::move(key);
  }

  static bool is_merge(const ConfigNode& key) { return key.text() == "<<" && !key.quoted(); }

  void take_merged(Frame& frame, const ConfigNode& value) {
    const auto take = [&](const ConfigNode& one) {
      if (one.is_mapping())
        frame.merged.push_back(one);
      else
        diagnostics_.error(
            one, fmt::format("<<: expected a mapping, or a list of mappings, found {}{}", one.describe(),
                             one.is_scalar() ? "; an alias begins with *" : ""));
    };
    if (!value.is_sequence()) return take(value);
    for (const ConfigNode& one : value.items()) take(one);
  }

  /// Inserts the entries of merged mappings before the mapping's own entries, like PyYAML. If a key occurs
  /// several times, the mapping's own entry takes precedence, followed by the entries of the first merged
  /// mapping.
  static void merge(Frame& frame) {
    std::vector<ConfigNode::Entry> all;
    for (const ConfigNode& one : frame.merged)
      for (const ConfigNode::Entry& entry : one.entries())
        if (frame.keys.insert(entry.first.text()).second) all.push_back(entry);
    all.insert(all.end(), frame.entries.begin(), frame.entries.end());
    frame.entries = std::move(all);
  }

  /// Reports an error if a quoted scalar has no closing quotation mark. The parser extends such a scalar to
  /// the end of the file.
  void check_quotes(const YAML::Mark& mark) {
    const size_t first = quote_of_scalar(text_, static_cast<size_t>(std::max(mark.pos, 0)));
    if (first == std::string_view::npos) return;
    const size_t last = closing_quote(text_, first);
    if (last == std::string_view::npos) {
      is_unclosed_ = true;
      return diagnostics_.error(place(mark),
                                fmt::format("the quotation mark {} is not closed", text_[first]));
    }
    const auto lines = std::count(text_.begin() + static_cast<ptrdiff_t>(first),
                                  text_.begin() + static_cast<ptrdiff_t>(last), '\n');
    quote_ = mark;
    quote_end_line_ = lines > 0 ? mark.line + static_cast<int>(lines) : -1;
  }

  void reject_tag(const YAML::Mark& mark, const std::string& tag) {
    diagnostics_.error(place(mark), fmt::format("expected a value without a tag, found the tag '{}'", tag));
  }

  static std::string too_deep() {
    return fmt::format("expected at most {} levels of nesting, found more", kMaxDepth);
  }

  const ByteEscapes& escapes_;
  std::string_view text_;
  Mark place_;
  bool is_fixed_;
  Diagnostics& diagnostics_;
  YAML::Mark quote_ = YAML::Mark::null_mark();
  // Line of the end of `quote_`, counted from 0; -1 if the last quoted scalar is on a single line.
  int quote_end_line_ = -1;
  bool is_unclosed_ = false;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, Subtree> anchors_;
  Subtree root_;
  size_t nodes_ = 0;
  bool started_ = false, found_ = false;
};

/// A stream buffer over a string owned elsewhere.
class ViewBuffer final : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    // The const_cast is safe because a stream never writes to its get area.
    char* first = const_cast<char*>(text.data());
    setg(first, first, first + text.size());
  }
};

/// Reports a syntax error at the place where the mistake probably is, which may be before the place where the
/// parser found the error.
void report_syntax(const YAML::Exception& mistake, const Builder& builder, std::string_view text,
                   Diagnostics& diagnostics) {
  if (builder.has_unclosed_quote()) return;
  YAML::Mark mark = mistake.mark;
  if (mark.is_null()) return diagnostics.error(builder.place(YAML::Mark()), mistake.msg);
  if (const YAML::Mark quote = builder.quoted_up_to(mark.line); !quote.is_null())
    return diagnostics.error(builder.place(quote),
                             fmt::format("this quoted string continues to line {}, and the text after it is "
                                         "not valid YAML ({}); is a closing quotation mark missing before "
                                         "that line?",
                                         mark.line + 1, mistake.msg));
  std::vector<TextMistake> keys = keys_without_blank(text, mark.line + 1);
  if (keys.empty()) keys = keys_without_blank(text, mark.line);
  for (const TextMistake& key : keys) {
    mark.line = key.line - 1;
    mark.column = key.column - 1;
    diagnostics.error(builder.place(mark), key.message);
  }
  if (keys.empty()) diagnostics.error(builder.place(mark), mistake.msg + builder.context());
}

ConfigNode parse(std::string_view text, const Mark& place, bool is_fixed, Diagnostics& diagnostics) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const auto at = [&](int line, int column) { return is_fixed ? place : Mark{place.file, line, column}; };
  if (const auto mistake = find_text_mistake(text)) {
    diagnostics.error(at(mistake->line, mistake->column), mistake->message);
    return {};
  }
  const size_t before = diagnostics.count();
  const ByteEscapes escapes(text);
  Builder builder(escapes, place, is_fixed, diagnostics);
  try {
    ViewBuffer buffer(escapes.text());
    std::istream stream(&buffer);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    if (!builder.found_anything()) diagnostics.error(at(1, 1), "expected a YAML document, found nothing");
  } catch (const YAML::Exception& mistake) {
    report_syntax(mistake, builder, text, diagnostics);
  }
  return diagnostics.count() == before ? builder.root() : ConfigNode();
}

}  // namespace

ConfigNode parse_yaml_at(std::string_view text, const Mark& place, Diagnostics& diagnostics) {
  return parse(text, place, true, diagnostics);
}

ConfigNode parse_yaml(std::string_view text, const std::string& file_name, Diagnostics& diagnostics) {
  return parse(text, {std::make_shared<const std::string>(file_name), 1, 1}, false, diagnostics);
}

}  // namespace dtrain
