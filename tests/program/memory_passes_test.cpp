// Tests passes for sharded state and for memory. Each test prints a program before and after the pass.
#include "planned_layers.h"

namespace dtrain::test {

TEST_CASE("sharded parameters are gathered before their readers") {
  Compilation made(chain(dense(), relu(), dense()), {}, {.gathers_parameters = true});
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
          6     0  backward  b backward       gradient of b%6, b%3  gradient of a%7
          7     0  backward  a backward       gradient of a%7, x%0
          8     0  backward  gradients ready
)");
  gather_parameters(made.step);
  CHECK(made.text() == R"(
instruction  slot  phase     call             reads                                     writes
-----------  ----  --------  ---------------  ----------------------------------------  ------------------
          0     0  forward   a gather                                                   parameters of a%8
          1     0  forward   a join                                                     parameters of a%8
          2     0  forward   c gather                                                   parameters of c%9
          3     0  forward   a forward        x%0, parameters of a%8                    a%2
          4     0  forward   b forward        a%2                                       b%3
          5     0  forward   c join                                                     parameters of c%9
          6     0  forward   c forward        b%3, parameters of c%9                    c%4
          7     0  loss      c loss           c%4, target of c%1                        gradient of c%5
          8     0  backward  c gather                                                   parameters of c%10
          9     0  backward  c join                                                     parameters of c%10
         10     0  backward  a gather                                                   parameters of a%11
         11     0  backward  c backward       gradient of c%5, b%3, parameters of c%10  gradient of b%6
         12     0  backward  gradients ready
         13     0  backward  b backward       gradient of b%6, b%3                      gradient of a%7
         14     0  backward  a join                                                     parameters of a%11
         15     0  backward  a backward       gradient of a%7, x%0, parameters of a%11
         16     0  backward  gradients ready
)");
}

TEST_CASE("sharded gradients are reduced once a bucket is full") {
  Compilation made(chain(dense(), relu(), dense()), {}, {.reduces_gradients = true});
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
          6     0  backward  b backward       gradient of b%6, b%3  gradient of a%7
          7     0  backward  a backward       gradient of a%7, x%0
          8     0  backward  gradients ready
)");
  reduce_gradients(made.step);
  CHECK(made.text() == R"(
instruction  slot  phase     call              reads                  writes
-----------  ----  --------  ----------------  ---------------------  --------------------------------------
          0     0  forward   a forward         x%0                    a%2
          1     0  forward   b forward         a%2                    b%3
          2     0  forward   c forward         b%3                    c%4
          3     0  loss      c loss            c%4, target of c%1     gradient of c%5
          4     0  backward  gradients zero                           gradients to reduce%8
          5     0  backward  c backward        gradient of c%5, b%3   gradient of b%6, gradients to reduce%8
          6     0  backward  gradients reduce  gradients to reduce%8
          7     0  backward  b backward        gradient of b%6, b%3   gradient of a%7
          8     0  backward  gradients zero                           gradients to reduce%9
          9     0  backward  a backward        gradient of a%7, x%0   gradients to reduce%9
         10     0  backward  gradients reduce  gradients to reduce%9
)");
}

TEST_CASE("a value shares the buffer of a value that it overwrites") {
  Compilation made(chain(dense(), relu(), dense()));
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
          6     0  backward  b backward       gradient of b%6, b%3  gradient of a%7
          7     0  backward  a backward       gradient of a%7, x%0
          8     0  backward  gradients ready
)");
  assign_buffers(made.step);
  CHECK(made.text() == R"(
instruction  slot  phase     call             reads  writes
-----------  ----  --------  ---------------  -----  ------
          0     0  forward   a forward        0      2
          1     0  forward   b forward        2      2
          2     0  forward   c forward        2      3
          3     0  loss      c loss           3 1    4
          4     0  backward  c backward       4 2    5
          5     0  backward  gradients ready
          6     0  backward  b backward       5 2    5
          7     0  backward  a backward       5 0
          8     0  backward  gradients ready
)");
  assign_memory(made.step);
  CHECK(("\n" + buffers_text(made.step.program)) == R"(
buffer  slot  offset  bytes  from  to  holds
------  ----  ------  -----  ----  --  -------------
     0     0       0     64     0   7  x
     1     0      64     64     0   3  target of c
     2     0     128     64     0   6  a
     3     0     192     64     2   3  c
     4     0     256     64     3   4  gradient of c
     5     0      64     64     4   7  gradient of b
)");
}

}  // namespace dtrain::test
