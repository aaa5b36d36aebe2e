// Tests passes that annotate nodes. Each test prints the program without and with the pass.
#include "planned_layers.h"

namespace dtrain::test {

TEST_CASE("a loss reads logits if it has a form for logits") {
  for (const char* softmax : {"activation: softmax", "softmax"}) {
    Graph graph = chain(dense(), dense(), relu());
    Diagnostics diagnostics;
    graph.nodes[3].layer = registry<Layer>().parse(parse_yaml(softmax, "l.yaml", diagnostics), diagnostics);
    Compilation before(graph, {}, {}, "sparse_categorical_crossentropy");
    Compilation after(graph, {}, {}, "sparse_categorical_crossentropy");
    choose_loss_points(after.step);
    lower({&before, &after});
    CHECK(before.text() == R"(
instruction  slot  phase     call             reads                 writes
-----------  ----  --------  ---------------  --------------------  ---------------
          0     0  forward   a forward        x%0                   a%2
          1     0  forward   b forward        a%2                   b%3
          2     0  forward   c forward        b%3                   c%4
          3     0  loss      c loss           c%4, target of c%1    gradient of c%5
          4     0  backward  c backward       gradient of c%5, c%4  gradient of b%6
          5     0  backward  b backward       gradient of b%6, a%2  gradient of a%7
          6     0  backward  gradients ready
          7     0  backward  a backward       gradient of a%7, x%0
          8     0  backward  gradients ready
)");
    CHECK(after.text() == R"(
instruction  slot  phase     call             reads                 writes
-----------  ----  --------  ---------------  --------------------  ---------------
          0     0  forward   a forward        x%0                   a%2
          1     0  forward   b forward        a%2                   b%3
          2     0  forward   c forward        b%3                   c%4
          3     0  loss      c loss           b%3, target of c%1    gradient of b%5
          4     0  backward  b backward       gradient of b%5, a%2  gradient of a%6
          5     0  backward  gradients ready
          6     0  backward  a backward       gradient of a%6, x%0
          7     0  backward  gradients ready
)");
  }
}

TEST_CASE("an activation is fused into the layer before it") {
  const Graph graph = chain(dense(), relu(), dense());
  Compilation before(graph), after(graph);
  fuse_activations(after.step);
  lower({&before, &after});
  CHECK(before.text() == R"(
instruction  slot  phase     call             reads                 writes
-----------  ----  --------  ---------------  --------------------  ---------------
          0     0  forward   a forward        x%0                   a%2
          1     0  forward   b forward        a%2                   b%3
          2     0  forward   c forward        b%3                   c%4
          3     0  loss      c loss           c%4, target of c%1    gradient of c%5
          4     0  backward  c backward       gradient of c%5, b%3  gradient of b%6
          5     0  backward  gradients ready
          6     0  backward  b backward       gradient of b%6, b%3  gradient of a%7
          7     0  backward  a backward       gradient of a%7, x%0
          8     0  backward  gradients ready
)");
  CHECK(after.text() == R"(
instruction  slot  phase     call               reads                 writes
-----------  ----  --------  -----------------  --------------------  ---------------
          0     0  forward   a forward          x%0                   a%2
          1     0  forward   c forward          a%2                   c%3
          2     0  loss      c loss             c%3, target of c%1    gradient of c%4
          3     0  backward  c backward         gradient of c%4, a%2  gradient of a%5
          4     0  backward  gradients ready
          5     0  backward  gradient of a sum  gradient of a%5, a%2  gradient of a%6
          6     0  backward  a backward         gradient of a%6, x%0
          7     0  backward  gradients ready
)");
}

TEST_CASE("a layer that can add computes the sum that reads its output") {
  PlannedLayer normal = dense();
  normal.adds = true;
  PlannedGraph made;
  const int a = made.add("a", {0}, dense());
  made.add("sum", {made.add("normal", {a}, normal), a}, sum());
  Compilation before(made.graph), after(made.graph);
  fuse_sums(after.step, after.ops);
  lower({&before, &after});
  CHECK(before.text() == R"(
instruction  slot  phase     call                  reads                             writes
-----------  ----  --------  --------------------  --------------------------------  --------------------
          0     0  forward   a forward             x%0                               a%2
          1     0  forward   normal forward        a%2                               normal%3
          2     0  forward   sum forward           normal%3, a%2                     sum%4
          3     0  loss      sum loss              sum%4, target of sum%1            gradient of sum%5
          4     0  backward  gradient of sum view  gradient of sum%5                 gradient of normal%6
          5     0  backward  gradient of sum view  gradient of sum%5                 gradient of a%7
          6     0  backward  normal backward       gradient of normal%6, a%2         gradient of a%8
          7     0  backward  gradients ready
          8     0  backward  gradient of a sum     gradient of a%7, gradient of a%8  gradient of a%9
          9     0  backward  a backward            gradient of a%9, x%0
         10     0  backward  gradients ready
)");
  CHECK(after.text() == R"(
instruction  slot  phase     call                  reads                             writes
-----------  ----  --------  --------------------  --------------------------------  --------------------
          0     0  forward   a forward             x%0                               a%2
          1     0  forward   normal forward        a%2, a%2                          sum%4
          2     0  loss      sum loss              sum%4, target of sum%1            gradient of sum%5
          3     0  backward  gradient of sum view  gradient of sum%5                 gradient of normal%6
          4     0  backward  gradient of sum view  gradient of sum%5                 gradient of a%7
          5     0  backward  normal backward       gradient of normal%6, a%2         gradient of a%8
          6     0  backward  gradients ready
          7     0  backward  gradient of a sum     gradient of a%7, gradient of a%8  gradient of a%9
          8     0  backward  a backward            gradient of a%9, x%0
          9     0  backward  gradients ready
)");
}

TEST_CASE("gradients are computed back to the first trained layer") {
  PlannedLayer plain = dense();
  plain.parameters = 0;
  const Graph graph = chain(plain, dense(), relu());
  Compilation before(graph), after(graph);
  find_gradients(after.step);
  before.lower();
  after.lower();
  CHECK(before.text() == R"(
instruction  slot  phase    call       reads               writes
-----------  ----  -------  ---------  ------------------  ------
          0     0  forward  a forward  x%0                 a%2
          1     0  forward  b forward  a%2                 b%3
          2     0  forward  c forward  b%3                 c%4
          3     0  loss     c loss     c%4, target of c%1
)");
  CHECK(after.text() == R"(
instruction  slot  phase     call             reads                 writes
-----------  ----  --------  ---------------  --------------------  ---------------
          0     0  forward   a forward        x%0                   a%2
          1     0  forward   b forward        a%2                   b%3
          2     0  forward   c forward        b%3                   c%4
          3     0  loss      c loss           c%4, target of c%1    gradient of c%5
          4     0  backward  c backward       gradient of c%5, c%4  gradient of b%6
          5     0  backward  b backward       gradient of b%6, a%2
          6     0  backward  gradients ready
)");
}

}  // namespace dtrain::test
