#include "processes/agreement.h"

#include <doctest/doctest.h>

namespace dtrain {

TEST_CASE("equal facts have no differences") {
  const Json facts = Json::object().set("build", "1a").set("libraries", Json::object().set("oneDNN", "3.1"));
  CHECK(describe_differences({facts, facts}, {"a", "b"}) == "");
}

TEST_CASE("all differences are listed, with the processes that have each value") {
  const auto facts = [](const char* build, const char* onednn, int level) {
    return Json::object()
        .set("dtrain", "0.1.0")
        .set("build", build)
        .set("libraries", Json::object().set("oneDNN", onednn))
        .set("level", level);
  };
  CHECK(describe_differences({facts("1a", "3.1", 4), facts("1a", "3.1", 4), facts("2b", "3.1", 3)},
                             {"a", "a", "b"}) ==
        "build: 1a on a (processes 0 to 1); 2b on b (process 2)\n"
        "level: 4 on a (processes 0 to 1); 3 on b (process 2)");
  CHECK(describe_differences(
            {facts("1a", "3.1", 4), Json::object().set("dtrain", "0.1.0").set("build", "1a").set("level", 4)},
            {"a", "b"}) == "libraries.oneDNN: 3.1 on a (process 0); missing on b (process 1)");
}

TEST_CASE("the processes of a machine are listed together, in ranges of ranks") {
  std::vector<Json> facts;
  for (const int build : {1, 2, 1, 2, 1, 1, 1}) facts.push_back(Json::object().set("build", build));
  CHECK(describe_differences(facts, {"a", "b", "a", "b", "a", "b", "a"}) ==
        "build: 1 on a (processes 0, 2, 4, 6), b (process 5); 2 on b (processes 1, 3)");
  CHECK(describe_differences(facts, {"a", "a", "a", "a", "a", "a", "a"}) ==
        "build: 1 on a (processes 0, 2, 4 to 6); 2 on a (processes 1, 3)");
}

TEST_CASE("this program has a build id") {
  CHECK(build_id() != "");
}

}  // namespace dtrain
