// Tests passes that rewrite instructions. Each test prints a program before and after the pass.
#include "planned_layers.h"

namespace dtrain::test {

TEST_CASE("a final softmax that neither a loss nor a metric reads is removed") {
  Graph graph = chain(dense(), dense(), relu());
  Diagnostics diagnostics;
  graph.nodes[3].layer = registry<Layer>().parse(parse_yaml("softmax", "l.yaml", diagnostics), diagnostics);
  Compilation made(graph, {}, {}, "sparse_categorical_crossentropy");
  choose_loss_points(made.step);
  lower({&made});
  CHECK(made.text() == R"(
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
  remove_unread(made.step);
  CHECK(made.text() == R"(
instruction  slot  phase     call             reads                 writes
-----------  ----  --------  ---------------  --------------------  ---------------
          0     0  forward   a forward        x%0                   a%2
          1     0  forward   b forward        a%2                   b%3
          2     0  loss      c loss           b%3, target of c%1    gradient of b%5
          3     0  backward  b backward       gradient of b%5, a%2  gradient of a%6
          4     0  backward  gradients ready
          5     0  backward  a backward       gradient of a%6, x%0
          6     0  backward  gradients ready
)");
}

TEST_CASE("a prediction keeps the outputs and what they depend on") {
  PlannedGraph branches;
  const int a = branches.add("a", {0}, dense());
  branches.add("e", {branches.add("d", {a}, relu())}, relu());
  branches.add("c", {a}, dense());
  Compilation made(branches.graph, {}, {}, "mean_squared_error", PlanKey::Purpose::prediction);
  lower({&made});
  CHECK(made.text() == R"(
instruction  slot  phase    call       reads  writes
-----------  ----  -------  ---------  -----  ------
          0     0  forward  a forward  x%0    a%1
          1     0  forward  d forward  a%1    d%2
          2     0  forward  e forward  d%2    e%3
          3     0  forward  c forward  a%1    c%4
)");
  remove_unread(made.step);
  CHECK(made.text() == R"(
instruction  slot  phase    call       reads  writes
-----------  ----  -------  ---------  -----  ------
          0     0  forward  a forward  x%0    a%1
          1     0  forward  c forward  a%1    c%4
)");
}

TEST_CASE("an input is converted to the layout that its layer requires") {
  Compilation made(chain(dense(), in_blocks(), in_blocks()));
  lower({&made});
  CHECK(made.text() == R"(
instruction  slot  phase     call             reads                          writes
-----------  ----  --------  ---------------  -----------------------------  ------------------------
          0     0  forward   a forward        x%0                            a%2
          1     0  forward   b forward        a%2                            b%3:blocked8
          2     0  forward   c forward        b%3:blocked8                   c%4:blocked8
          3     0  loss      c loss           c%4:blocked8, target of c%1    gradient of c%5
          4     0  backward  c backward       gradient of c%5, b%3:blocked8  gradient of b%6:blocked8
          5     0  backward  gradients ready
          6     0  backward  b backward       gradient of b%6:blocked8, a%2  gradient of a%7:blocked8
          7     0  backward  gradients ready
          8     0  backward  a backward       gradient of a%7:blocked8, x%0
          9     0  backward  gradients ready
)");
  choose_layouts(made.step);
  CHECK(made.text() == R"(
instruction  slot  phase     call             reads                                    writes
-----------  ----  --------  ---------------  ---------------------------------------  -------------------------
          0     0  forward   a forward        x%0                                      a%2
          1     0  forward   a reorder        a%2                                      a%8:blocked8
          2     0  forward   b forward        a%8:blocked8                             b%3:blocked8
          3     0  forward   c forward        b%3:blocked8                             c%4:blocked8
          4     0  loss      c reorder        c%4:blocked8                             c%9
          5     0  loss      c loss           c%9, target of c%1                       gradient of c%5
          6     0  backward  c reorder        gradient of c%5                          gradient of c%10:blocked8
          7     0  backward  c backward       gradient of c%10:blocked8, b%3:blocked8  gradient of b%6:blocked8
          8     0  backward  gradients ready
          9     0  backward  b backward       gradient of b%6:blocked8, a%8:blocked8   gradient of a%7:blocked8
         10     0  backward  gradients ready
         11     0  backward  a reorder        gradient of a%7:blocked8                 gradient of a%11
         12     0  backward  a backward       gradient of a%11, x%0
         13     0  backward  gradients ready
)");
}

TEST_CASE("a value that another slot reads in another layout is converted before it is sent") {
  Compilation made(chain(dense(), in_blocks(), dense()), {0, 0, 1, 1});
  lower({&made});
  choose_layouts(made.step);
  CHECK(made.text() == R"(
instruction  slot  phase     call        reads                                    writes
-----------  ----  --------  ----------  ---------------------------------------  -------------------------
          0     0  forward   a forward   x%0                                      a%2
          1     0  forward   a reorder   a%2                                      a%8:blocked8
          2     1  forward   b forward   a%8:blocked8                             b%3:blocked8
          3     1  forward   b reorder   b%3:blocked8                             b%9
          4     1  forward   c forward   b%9                                      c%4
          5     1  loss      c loss      c%4, target of c%1                       gradient of c%5
          6     1  backward  c backward  gradient of c%5, b%9                     gradient of b%6
          7     1  backward  b reorder   gradient of b%6                          gradient of b%10:blocked8
          8     1  backward  b backward  gradient of b%10:blocked8, a%8:blocked8  gradient of a%7:blocked8
          9     1  backward  a reorder   gradient of a%7:blocked8                 gradient of a%11
         10     0  backward  a backward  gradient of a%11, x%0
)");
  transfer_values(made.step);
  CHECK(made.text() == R"(
instruction  slot  phase     call                   reads                                     writes
-----------  ----  --------  ---------------------  ----------------------------------------  -------------------------
          0     0  forward   a forward              x%0                                       a%2
          1     0  forward   a reorder              a%2                                       a%8:blocked8
          2     0  forward   a send                 a%8:blocked8
          3     1  forward   a receive                                                        a%12:blocked8
          4     1  forward   b forward              a%12:blocked8                             b%3:blocked8
          5     1  forward   b reorder              b%3:blocked8                              b%9
          6     1  forward   c forward              b%9                                       c%4
          7     1  loss      c loss                 c%4, target of c%1                        gradient of c%5
          8     1  backward  c backward             gradient of c%5, b%9                      gradient of b%6
          9     1  backward  b reorder              gradient of b%6                           gradient of b%10:blocked8
         10     1  backward  b backward             gradient of b%10:blocked8, a%12:blocked8  gradient of a%7:blocked8
         11     1  backward  a reorder              gradient of a%7:blocked8                  gradient of a%11
         12     1  backward  gradient of a send     gradient of a%11
         13     0  backward  gradient of a receive                                            gradient of a%13
         14     0  backward  a backward             gradient of a%13, x%0
)");
}

TEST_CASE("a segment's forward calls are repeated before its backward calls") {
  Graph graph = chain(dense(), dense(), dense());
  for (const size_t node : {1, 2}) graph.nodes[node].recompute = 0;
  Compilation made(graph);
  lower({&made});
  CHECK(made.text() == R"(
instruction  slot  phase     call             reads                 writes
-----------  ----  --------  ---------------  --------------------  ---------------
          0     0  forward   a forward        x%0                   a%2
          1     0  forward   b forward        a%2                   b%3
          2     0  forward   c forward        b%3                   c%4
          3     0  loss      c loss           c%4, target of c%1    gradient of c%5
          4     0  backward  c backward       gradient of c%5, b%3  gradient of b%6
          5     0  backward  gradients ready
          6     0  backward  b backward       gradient of b%6, a%2  gradient of a%7
          7     0  backward  gradients ready
          8     0  backward  a backward       gradient of a%7, x%0
          9     0  backward  gradients ready
)");
  recompute(made.step);
  CHECK(made.text() == R"(
instruction  slot  phase     call             reads                 writes
-----------  ----  --------  ---------------  --------------------  ---------------
          0     0  forward   a forward        x%0                   a%2
          1     0  forward   b forward        a%2                   b%3
          2     0  forward   c forward        b%3                   c%4
          3     0  loss      c loss           c%4, target of c%1    gradient of c%5
          4     0  backward  c backward       gradient of c%5, b%3  gradient of b%6
          5     0  backward  gradients ready
          6     0  backward  a forward        x%0                   a%8
          7     0  backward  b backward       gradient of b%6, a%8  gradient of a%7
          8     0  backward  gradients ready
          9     0  backward  a backward       gradient of a%7, x%0
         10     0  backward  gradients ready
)");
}

TEST_CASE("a parameter that two slots share is sent to the second, which sends its gradient back") {
  Graph graph = chain(dense(), dense(), dense());
  graph.nodes[3].shared_with = 1;
  Compilation made(graph, {0, 0, 0, 1});
  lower({&made});
  CHECK(made.text() == R"(
instruction  slot  phase     call                  reads                 writes
-----------  ----  --------  --------------------  --------------------  -----------------------------------
          0     0  forward   a forward             x%0                   a%2
          1     0  forward   b forward             a%2                   b%3
          2     1  forward   c forward             b%3                   c%4
          3     1  loss      c loss                c%4, target of c%1    gradient of c%5
          4     1  backward  c backward            gradient of c%5, b%3  gradient of b%7, gradient of a/w0%6
          5     0  backward  b backward            gradient of b%7, a%2  gradient of a%8
          6     0  backward  a backward            gradient of a%8, x%0
          7     0  backward  gradient of a/w0 sum  gradient of a/w0%6
)");
  transfer_values(made.step);
  CHECK(made.text() == R"(
instruction  slot  phase     call                      reads                          writes
-----------  ----  --------  ------------------------  -----------------------------  -----------------------------------
          0     0  forward   a/w0 send
          1     0  forward   a forward                 x%0                            a%2
          2     0  forward   b forward                 a%2                            b%3
          3     0  forward   b send                    b%3
          4     1  forward   b receive                                                b%9
          5     1  forward   a/w0 receive                                             a/w0%10
          6     1  forward   c forward                 b%9, a/w0%10                   c%4
          7     1  loss      c loss                    c%4, target of c%1             gradient of c%5
          8     1  backward  c backward                gradient of c%5, b%9, a/w0%10  gradient of b%7, gradient of a/w0%6
          9     1  backward  gradient of b send        gradient of b%7
         10     1  backward  gradient of a/w0 send     gradient of a/w0%6
         11     0  backward  gradient of b receive                                    gradient of b%11
         12     0  backward  b backward                gradient of b%11, a%2          gradient of a%8
         13     0  backward  a backward                gradient of a%8, x%0
         14     0  backward  gradient of a/w0 receive                                 gradient of a/w0%12
         15     0  backward  gradient of a/w0 sum      gradient of a/w0%12
)");
}

}  // namespace dtrain::test
