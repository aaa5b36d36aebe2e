#include "config/load/load.h"

#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "config/load/environment.h"
#include "config/load/files.h"
#include "support.h"
#include "support/source_dir.h"
#include "support/temp_dir.h"

namespace dtrain::test {

namespace {

struct Loaded {
  ConfigNode node;
  std::string messages;
};

Loaded load(const std::string& path, const std::vector<std::string>& sets = {}) {
  Diagnostics diagnostics;
  ConfigNode node = load_config(path, sets, diagnostics);
  return {node, messages(diagnostics)};
}

Loaded set(std::string_view text, const std::vector<std::string>& sets) {
  Diagnostics diagnostics;
  ConfigNode node = apply_sets(yaml(text), sets, diagnostics);
  return {node, messages(diagnostics)};
}

void check_set(std::string_view text, const std::vector<std::string>& sets, std::string_view expected) {
  const Loaded loaded = set(text, sets);
  CHECK(loaded.messages == "");
  CAPTURE(loaded.node.to_yaml());
  CHECK(equal(loaded.node, yaml(expected)));
}

/// Sets or unsets an environment variable until the end of the scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (value)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }
  ~Variable() { unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("a configuration is read from a file or from a pipe with a writer") {
  const TempDir folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(load(pipe).messages ==
        "error: cannot read the configuration file '" + pipe + "': it is a pipe without a writer");
  // The thread that writes to the pipe may be slow and may write in several pieces.
  std::thread writer([&] {
    const int end = open(pipe.c_str(), O_WRONLY);
    for (const char* piece : {"a: ", "1\n", "b: 2\n"}) {
      usleep(150'000);
      CHECK(write(end, piece, std::strlen(piece)) == static_cast<ssize_t>(std::strlen(piece)));
    }
    close(end);
  });
  const Loaded loaded = load(pipe);
  writer.join();
  CHECK(loaded.messages == "");
  CHECK(equal(loaded.node, yaml("{a: 1, b: 2}")));

  CHECK(contains(load("/dev/null").messages, "it is a device"));
  CHECK(contains(load("/dev/zero").messages, "it is a device"));
  CHECK(contains(load(folder / ".").messages, "it is a directory"));
  const std::string included = folder.write("a.yaml", "model: ./pipe\n");
  CHECK(load(included).messages == included + ":1:8: error: cannot read the configuration file '" + pipe +
                                       "': it is a pipe without a writer");
}

TEST_CASE("environment variables in strings are expanded") {
  const TempDir folder;
  const Variable one("DTRAIN_TEST_ONE", "1"), empty("DTRAIN_TEST_EMPTY", ""),
      none("DTRAIN_TEST_NONE", nullptr);
  const std::string file = folder.write("a.yaml",
                                        "a: ${DTRAIN_TEST_ONE}\n"
                                        "b: \"x${DTRAIN_TEST_NONE:-y}z\"\n"
                                        "c: ${DTRAIN_TEST_EMPTY:-d}\n"
                                        "d: $$HOME $name $\n"
                                        "e:\n  - ${DTRAIN_TEST_NONE:-}\n  - '${DTRAIN_TEST_NONE:-}'\n"
                                        "f: ${DTRAIN_TEST_NONE:-/x:-y}\n"
                                        "g: {$k: $v}\n"
                                        "h: '${DTRAIN_TEST_ONE}'\n"
                                        "i: \"$$1\"\n");
  const Loaded loaded = load(file);
  CHECK(loaded.messages == "");
  CHECK(equal(loaded.node,
              yaml("{a: 1, b: xyz, c: d, d: $HOME $name $, e: [null, null], f: '/x:-y', g: {$k: $v}, h: 1, "
                   "i: $1}")));
  REQUIRE(loaded.node.find("a") != nullptr);
  CHECK_FALSE(loaded.node.find("a")->quoted());
  // The variable's value 1 is a number, despite the quotation marks.
  CHECK_FALSE(loaded.node.find("h")->quoted());
  CHECK(loaded.node.find("i")->quoted());
  CHECK(loaded.node.find("a")->mark().str() == file + ":1:4");

  const std::string bad =
      folder.write("b.yaml", "a:\n  - ${DTRAIN_TEST_NONE}\n  - ${1x}\n  - x${y\n  - ${}\n");
  CHECK(load(bad).messages == bad +
                                  ":2:5: error: the environment variable DTRAIN_TEST_NONE is not set; write "
                                  "${DTRAIN_TEST_NONE:-default} to give a default\n" +
                                  bad + ":3:5: error: expected ${NAME} or ${NAME:-default}, found '${1x}'\n" +
                                  bad + ":4:5: error: expected a '}' after '${', found none\n" + bad +
                                  ":5:5: error: expected ${NAME} or ${NAME:-default}, found '${}'");
}

TEST_CASE("a variable may contain a list, a mapping or a string") {
  const auto value = [](const char* text) {
    const Variable variable("DTRAIN_TEST_ONE", text);
    Diagnostics diagnostics;
    const ConfigNode node = expand_environment(yaml("a: \"${DTRAIN_TEST_ONE}\""), diagnostics);
    CHECK(messages(diagnostics) == "");
    CHECK(node.find("a")->mark().str() == "f:1:4");
    return *node.find("a");
  };
  const ConfigNode list = value("[cpu:0, {a: 1}]");
  CHECK(equal(list, yaml("[cpu:0, {a: 1}]")));
  CHECK(list.items()[1].find("a")->mark().str() == "f:1:4");
  CHECK(value("'1'").quoted());
  CHECK(value("~").is_null());
  // The text of a variable is not split if a person would read it as a single value.
  for (const char* text : {"run #3", "*.tar", "{000..146}.tar", "a: b", "[1", "\"x", "true"})
    CHECK(value(text).text() == text);
  CHECK(value(" 7 \n").text() == "7");
}

TEST_CASE("a configuration is merged into its base") {
  const TempDir folder;
  folder.write("base/deep.yaml",
               "seed: 1\nmodel: m.yaml\ntrain: {epochs: 1, optimizer: {adam: {epsilon: 1e-6}}}\n");
  folder.write("base/m.yaml", "layers: [flatten]\ninputs: {x: [1]}\n");
  folder.write(
      "base/a.yaml",
      "base: deep.yaml\nseed: 2\ntrain: {optimizer: {adam: {learning_rate: 0.1}}, metrics: [a, b]}\n");
  const std::string file = folder.write(
      "b.yaml", "base: base/a.yaml\nmodel: {inputs: {x: [2]}}\ntrain: {metrics: [c]}\nname: b\n");
  const Loaded loaded = load(file);
  CHECK(loaded.messages == "");
  CHECK(equal(
      loaded.node,
      yaml("{seed: 2, model: {layers: [flatten], inputs: {x: [2]}}, train: {epochs: 1, optimizer: {adam: "
           "{epsilon: 1e-6, learning_rate: 0.1}}, metrics: [c]}, name: b}")));
  const auto place = [&](std::initializer_list<std::string_view> path) {
    return place_in(loaded.node, path).str();
  };
  CHECK(place({"seed"}) == folder / "base/a.yaml:2:7");
  CHECK(place({"model", "layers"}) == folder / "base/m.yaml:1:9");
  CHECK(place({"model", "inputs", "x"}) == file + ":2:21");
  CHECK(place({"train", "optimizer", "adam", "epsilon"}) == folder / "base/deep.yaml:3:48");

  // If the value of a key is the path of a file, it replaces the value of the base. The value null removes
  // it.
  folder.write("n.yaml", "layers: [dense]\n");
  const Loaded other = load(folder.write("c.yaml", "base: base/a.yaml\nmodel: n.yaml\ntrain:\n"));
  CHECK(equal(other.node, yaml("{seed: 2, model: {layers: [dense]}, train: null}")));
}

TEST_CASE("an invalid base is an error at its location") {
  const TempDir folder;
  const std::string a = folder.write("a.yaml", "seed: 1\nbase: b.yaml\n"),
                    b = folder.write("b.yaml", "base: a.yaml\n");
  CHECK(load(a).messages ==
        b + ":1:7: error: base: '" + a + "' is its own base (" + a + " -> " + b + " -> " + a + ")");
  const std::string self = folder.write("self.yaml", "base: ./self.yaml\n");
  CHECK(contains(load(self).messages, "self.yaml:1:7: error: base: "));
  CHECK(contains(load(folder.write("c.yaml", "base: none.yaml\n")).messages,
                 "c.yaml:1:7: error: cannot read the configuration file '" + folder / "none.yaml"));
  CHECK(contains(load(folder.write("d.yaml", "base: [a.yaml]\n")).messages,
                 "d.yaml:1:7: error: base: expected the path of a YAML file, found the list [a.yaml]"));
  folder.write("list.yaml", "- 1\n");
  CHECK(contains(load(folder.write("e.yaml", "base: list.yaml\n")).messages,
                 "list.yaml:1:1: error: the configuration of a run must be a mapping"));
  folder.write("twice.yaml", "a: 1\na: 2\n");
  CHECK(contains(load(folder.write("f.yaml", "base: twice.yaml\n")).messages,
                 "twice.yaml:2:1: error: duplicate key 'a'"));
  for (int i = 0; i < 40; ++i)
    folder.write("chain" + std::to_string(i) + ".yaml", "base: chain" + std::to_string(i + 1) + ".yaml\n");
  CHECK(contains(load(folder / "chain0.yaml").messages,
                 "base: the chain of base configurations has more than 32 files"));
}

TEST_CASE("dollars are escaped only where they would begin a variable") {
  const ConfigNode tree = yaml("{a: '${HOME}', b: [$x, '$$', '$$$', 'x$${y', '$', 7], c: {d: 'a${'}}");
  const ConfigNode escaped = escape_environment(tree);
  CHECK(equal(escaped, yaml("{a: '$${HOME}', b: [$x, '$$$', '$$$$$', 'x$$$${y', '$', 7], c: {d: 'a$${'}}")));
  Diagnostics diagnostics;
  CHECK(equal(expand_environment(escaped, diagnostics), tree));
  CHECK_FALSE(diagnostics.has_errors());
}

TEST_CASE("included files replace their paths") {
  const TempDir folder;
  const Variable name("DTRAIN_TEST_ONE", "one");
  folder.write("models/m.yaml", "layers: [flatten]\n");
  folder.write("configs/d.yml", "root: ${DTRAIN_TEST_ONE}\n");
  const std::string file = folder.write(
      "configs/a.yaml", "name: b/c.yaml\nmodel: ../models/m.yaml\ndataset: d.yml\nstrategy: mirrored\n");
  const Loaded loaded = load(file);
  CHECK(loaded.messages == "");
  CHECK(
      equal(loaded.node,
            yaml("{name: b/c.yaml, model: {layers: [flatten]}, dataset: {root: one}, strategy: mirrored}")));
  CHECK(loaded.node.find("model")->find("layers")->mark().str() == folder / "models/m.yaml:1:9");

  const Loaded changed = load(file, {"model.layers.0=dropout", "dataset=" + folder / "models/m.yaml"});
  CHECK(changed.messages == "");
  CHECK(changed.node.find("model")->find("layers")->items()[0].text() == "dropout");
  CHECK(changed.node.find("dataset")->find("layers") != nullptr);
}

TEST_CASE("an unreadable or invalid file is an error that names it") {
  const TempDir folder;
  CHECK(load(folder / "none.yaml").messages ==
        "error: cannot read the configuration file '" + folder / "none.yaml" + "': there is no such file");
  folder.write("lenet.yaml", "layers: []\n");
  CHECK(contains(load(folder / "leent.yml").messages, "there is no such file; did you mean 'lenet.yaml'?"));
  CHECK(contains(load(folder / "").messages, "it is a directory"));
  const std::string list = folder.write("list.yaml", "- a\n");
  CHECK(load(list).messages ==
        list +
            ":1:1: error: the configuration of a run must be a mapping, but this file contains the list [a]");
  folder.write("broken.yaml", "a: [\n");
  const std::string file = folder.write("a.yaml", "model: x/none.yaml\ndataset: broken.yaml\n");
  const std::string errors = load(file).messages;
  CHECK(contains(errors, file + ":1:8: error: cannot read the configuration file '" + folder / "x/none.yaml" +
                             "': there is no such file"));
  CHECK(contains(errors, folder / "broken.yaml:"));
  CHECK(
      contains(load(folder.write("large.yaml", std::string((8u << 20) + 1, '#'))).messages, "at most 8 MiB"));
}

TEST_CASE("every configuration of the project loads and is written and read back unchanged") {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() + "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path());
    const Loaded loaded = load(entry.path().string());
    CHECK(loaded.messages == "");
    CHECK(equal(yaml(loaded.node.to_yaml()), loaded.node));
    ++seen;
  }
  CHECK(seen > 0);
}

TEST_CASE("--set replaces values") {
  const std::string text = "{train: {epochs: 1, optimizer: adam, list: [1, {a: b}]}, strategy: single}";
  check_set(text, {"train.epochs=5"},
            "{train: {epochs: 5, optimizer: adam, list: [1, {a: b}]}, strategy: single}");
  check_set(text, {"train.list.1.a=[x, y]", "train.list.0=2"},
            "{train: {epochs: 1, optimizer: adam, list: [2, {a: [x, y]}]}, strategy: single}");
  check_set(text, {"strategy={mirrored: {replicas: 3}}"},
            "{train: {epochs: 1, optimizer: adam, list: [1, {a: b}]}, strategy: {mirrored: {replicas: 3}}}");
  check_set(text, {"strategy={mirrored: {replicas: 3}}", "strategy.mirrored.replicas=4"},
            "{train: {epochs: 1, optimizer: adam, list: [1, {a: b}]}, strategy: {mirrored: {replicas: 4}}}");
  check_set(
      text, {"train.optimizer.adam.learning_rate=1e-2"},
      "{train: {epochs: 1, optimizer: {adam: {learning_rate: 1e-2}}, list: [1, {a: b}]}, strategy: single}");
  check_set(text, {"train="}, "{train: null, strategy: single}");
  check_set("{a: b=c}", {"a=x=y"}, "{a: x=y}");
  check_set(text, {"train.list[1].a=2", "train.list[0]=[]"},
            "{train: {epochs: 1, optimizer: adam, list: [[], {a: 2}]}, strategy: single}");
  check_set("{a: [[1, 2]]}", {"a[0][1]=3"}, "{a: [[1, 3]]}");
  check_set("{a: [1]}", {"a=[]"}, "{a: []}");
  // The new kind resembles the old one, and replaces it.
  check_set("{optimizer: {adam: {epsilon: 1}}}", {"optimizer.adamw.weight_decay=2"},
            "{optimizer: {adam: {epsilon: 1}, adamw: {weight_decay: 2}}}");
}

TEST_CASE("--set adds missing keys") {
  check_set("{train: }", {"train.epochs=5", "checkpoint.every=5 steps", "checkpoint.best.monitor=loss"},
            "{train: {epochs: 5}, checkpoint: {every: 5 steps, best: {monitor: loss}}}");
  const Loaded loaded = set("{train: {epochs: 1}}", {"train.epohcs=5"});
  CHECK(loaded.messages == "");
  CHECK(loaded.node.find("train")->entries()[1].first.mark().str() == "--set train.epohcs=5");
  CHECK(loaded.node.find("train")->entries()[1].second.mark().str() == "--set train.epohcs=5");
}

TEST_CASE("--set with an unknown path is an error") {
  const std::string text = "{train: {epochs: 1, optimizer: adam, list: [1, 2]}}";
  CHECK(set(text, {"train.epochs.x=5"}).messages ==
        "--set train.epochs.x=5: error: 'train.epochs' is '1', not a mapping or a list");
  for (const char* index : {"2", "-1", "x", "99999999999999999999"})
    CHECK(contains(set(text, {"train.list." + std::string(index) + "=5"}).messages,
                   "error: 'train.list' is a list of length 2; expected an index from 0 to 1, found '" +
                       std::string(index) + "'"));
  CHECK(contains(set("{list: []}", {"list.0=5"}).messages,
                 "error: 'list' is an empty list, so it has no item '0'; set the whole list"));
  for (const char* wrong :
       {"train.epochs", "", "=1", ".a=1", "a.=1", "a..b=1", "a[=1", "a[]=1", "a[0=1", "[0]=1", "a[0].=1"})
    CHECK(contains(set(text, {wrong}).messages, "error: expected KEY=VALUE, such as train.epochs=5"));
  CHECK(set(text, {"train.epochs=[1"}).messages.starts_with("--set train.epochs=[1: error: "));
  CHECK(set(text, {"train=${DTRAIN_TEST_NONE}"})
            .messages.starts_with("--set train=${DTRAIN_TEST_NONE}: error: the env"));
  CHECK(contains(set(text, {"a=" + std::string(1, '\x01')}).messages, "control character"));
  CHECK(contains(set(text, {"model=none/none.yaml"}).messages,
                 "cannot read the configuration file 'none/none.yaml'"));
}

TEST_CASE("find_file() looks next to the configuration and in $DTRAIN_DATA") {
  const TempDir folder;
  const std::string beside = folder.write("configs/x.csv", "1"), data = folder.write("data/y.csv", "1");
  const Mark mark{std::make_shared<const std::string>(folder / "configs/a.yaml"), 3, 1};
  const Variable variable("DTRAIN_DATA", (folder / "data").c_str());
  CHECK(find_file("x.csv", mark) == beside);
  CHECK(find_file("y.csv", mark) == data);
  CHECK(find_file("z.csv", mark) == folder / "configs/z.csv");
  CHECK(find_file("/x.csv", mark) == "/x.csv");
  CHECK(find_file("z.csv", Mark{}) == "z.csv");
}

}  // namespace dtrain::test
