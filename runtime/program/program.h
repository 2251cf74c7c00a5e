/* program.h: what a compiled task holds: the only thing that compiler and runtime share.
 *
 * The object file that `tfc build` links with the runtime defines
 *   tfc_program        the program: one block of bytes, written by compiler/emit.c, read in place: a header with the
 *                      places of tables, each a packed array of one of the structs below, in native layout. An index
 *                      into a table is 32 bits wide; a `text` is an offset into PROGRAM_TEXTS, NUL-terminated.
 *   tfc_kernels        an array of struct kernel_code, in the order of the program's kernel numbers; tfc_kernels_1 and so on
 *                      are the same for the further CPUs that it was built for (struct program_cpu)
 *
 * A task's program holds, for each entry, its parts: the task's own, and the part of whoever drives the entry.
 * A part is a tree of blocks of instructions over one array of slots; values cross tasks as numbered transfers. What host calls
 * of the entry call (functions of datasets) are parts, too, each with slots of its own: any thread may run one.
 */
#ifndef TFC_RUNTIME_PROGRAM_PROGRAM_H
#define TFC_RUNTIME_PROGRAM_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

/* ---- native kernels (made by targets/cpu) ---- */

struct kernel_fault {
  int32_t code;     /* 0: none yet; the first one stays */
  const char *text; /* of the check, with a %d for each of the values */
  int64_t shown[3]; /* STATUS_SHOWN */
};
struct kernel_call {
  void *const *buffers; /* one for each buffer of the kernel; scratch ones are NULL: they live in `scratch` */
  const int64_t *sizes;
  void *scratch; /* kernel_code.query(sizes, KERNEL_SCRATCH) bytes, aligned to 64, shared by all tiles of the call */
  struct kernel_fault *fault;
};
#define KERNEL_SCRATCH (-1) /* bytes of scratch */
#define KERNEL_PHASES (-2)  /* number of phases, at least 1: all tiles of a phase end before the next begins */
#define KERNEL_COST (-3)    /* rough nanoseconds of the whole call on one core: decides whether threads are worth it */
#define KERNEL_SHARING (-4) /* cache lines of its results that one thread writes after others have read them, where several work */
struct kernel_code {
  /* Runs the tiles begin .. end-1 of a phase. */
  void (*run)(const struct kernel_call *call, int64_t phase, int64_t begin, int64_t end);
  /* what >= 0: the number of tiles of that phase; else as above. */
  int64_t (*query)(const int64_t *sizes, int64_t what);
};
extern const struct kernel_code tfc_kernels[];
extern const unsigned char tfc_program[];

/* ---- sizes: postfix code over symbols, i64 words ---- */
enum program_dim_op {
  PROGRAM_DIM_CONST = 1,  /* next word: the value */
  PROGRAM_DIM_SYMBOL = 2, /* next word: the symbol */
  PROGRAM_DIM_ADD = 3,
  PROGRAM_DIM_MUL = 4,
  PROGRAM_DIM_FLOORDIV = 5,
  PROGRAM_DIM_MOD = 6,
  PROGRAM_DIM_MIN = 7,
  PROGRAM_DIM_MAX = 8,
  PROGRAM_DIM_END = 0,
};

/* ---- tables ---- */
#define PROGRAM_MAGIC UINT64_C(0x356772706366740a) /* changes whenever a struct below does */
#define PROGRAM_TASK_DRIVER UINT32_MAX             /* as in ir/flow/flow.h */
#define PROGRAM_TASK_SELF (UINT32_MAX - 1)
#define PROGRAM_NONE UINT32_MAX

enum program_table_id {
  PROGRAM_TEXTS,    /* bytes; offset 0 is "" */
  PROGRAM_DATA,     /* bytes, 64-aligned: constants and initial values; strings: struct program_string, then bytes */
  PROGRAM_WORDS,    /* int64_t: size codes */
  PROGRAM_OPERANDS, /* uint32_t: lists of slots, symbols, size codes, tasks ... */
  PROGRAM_TASKS,
  PROGRAM_VARIABLES,
  PROGRAM_ENTRIES,
  PROGRAM_PARTS,
  PROGRAM_BLOCKS,
  PROGRAM_INSTRS,
  PROGRAM_SLOTS,
  PROGRAM_PORTS,
  PROGRAM_ATTRS,
  PROGRAM_RUNNERS, /* loops beside the phases */
  PROGRAM_NODES,   /* the graph's nodes, sorted by name: what a client may send again */
  PROGRAM_TABLE_COUNT,
};
struct program_table {
  uint64_t offset; /* of the first item, from the start of the program */
  uint64_t count;  /* items */
};
enum {
  INIT_EVERYWHERE = 1, /* every task of the replicated job runs `init` for itself */
  INIT_ALWAYS = 2,     /* after a checkpoint was restored too: it is what a SavedModel's loader runs */
};
#define PROGRAM_CPUS_MAX 4
struct program_cpu {
  uint32_t name;  /* text: as `--cpu` has it */
  uint32_t level; /* that the machine must have: cpu.h */
};
struct program {
  uint64_t magic, size;
  uint64_t build_id;       /* equal in all tasks of one build */
  uint8_t build_key[32];   /* as well, and only they have it: never sent, never shown */
  uint32_t task;           /* which task this is */
  uint32_t chief;          /* who runs `init` */
  uint32_t build_json;     /* text */
  uint32_t replicated_job; /* text; "" when nothing is replicated */
  uint32_t kernel_count;
  uint32_t init_flags; /* INIT_... */
  uint32_t cpu_count;  /* 1 .. PROGRAM_CPUS_MAX */
  struct program_cpu cpus[PROGRAM_CPUS_MAX];
  struct program_table tables[PROGRAM_TABLE_COUNT];
};
/* A list: items first .. first+count-1 of the table its comment names. */
struct program_range {
  uint32_t first, count;
};
struct program_string {
  uint64_t offset, size; /* bytes from the start of PROGRAM_DATA */
};
struct program_task {
  uint32_t job, address; /* texts */
  uint32_t index, flags;
};
enum { PROGRAM_TASK_HOLDS = 1 }; /* it has variables that belong to the job: what a checkpoint holds, and what is lost with the task */
enum program_initial { PROGRAM_INITIAL_NONE, PROGRAM_INITIAL_DATA, PROGRAM_INITIAL_ZERO };
struct program_variable {
  uint32_t name, container, node; /* texts */
  uint8_t dtype, rank, has_shape, has_initial;
  uint32_t dims;         /* words: rank of them */
  uint32_t initial_dims; /* words: initial_rank of them */
  uint64_t initial;      /* offset into PROGRAM_DATA */
  uint32_t initial_rank;
  uint32_t is_resource; /* does not exist (NOT_FOUND) before its first assignment */
  uint32_t slice;       /* text: "10 4 0,5:0,4": it is this part of a partitioned variable, as checkpoints have it; "" */
  uint32_t panels;      /* words + 1, of enum program_panels: it lies in panels (base/panels.h), its initial value too; 0: it is dense */
};
/* Of what lies in panels, as a whole: behind these for each dimension of the dense value its size, and the number of the one in its place
 * (struct panels.order). */
enum program_panels { PANEL_RANK, PANEL_LANES, PANEL_COUNT, PANEL_WIDTH, PANEL_OUTER, PANEL_WORDS };
/* A feed or fetch of an entry. */
struct program_port {
  uint32_t name, tensor; /* texts: as the user names it; "node:0" */
  uint8_t dtype, rank;
  uint8_t any_rank, every_rank; /* other variants of the entry take other ranks; this one takes every rank */
  uint32_t dims;                /* operands: rank size codes */
  uint32_t reasons;             /* operands: rank texts: which node needs this size to be what it is; "" when it is the feed's own */
  uint32_t is_optional;         /* a fetch: without it the step would change the same */
};
struct program_entry {
  uint32_t name; /* text */
  uint8_t replicated, changes_state;
  uint8_t is_variant;                  /* the entry before it, for feeds of other ranks or sizes */
  uint8_t failed;                      /* a status: feeds of these ranks are wrong, for the reason `failed_text` */
  uint32_t failed_text, variants;      /* variants: how many follow this entry */
  struct program_range feeds, fetches; /* ports */
  struct program_range targets;        /* operands: texts, operation names */
  struct program_range parts;
  struct program_range functions;     /* parts that host calls of these parts, and of functions, run */
  struct program_range tasks;         /* operands: every task with a part of its own */
  struct program_range symbols;       /* operands: texts, names of the symbols */
  uint32_t partial;                   /* part + 1 of the first of `parts` once more, for partial runs: they run by counts, the
                                        * driver's starts without feeds; 0: none */
  struct program_range partial_needs; /* operands: for each fetch one word for each feed, not 0 where the fetch is computed from it */
  struct program_range decisions;     /* operands, pairs: a size code, and 1 where the feeds must make it 1, 0 where they must not */
};
/* Entries that are run again and again beside the phases, each on a thread of its own, until one ends with a status of `end_codes`. */
struct program_runner {
  uint32_t name;                /* text: of the queue that it fills */
  uint32_t is_chiefs;           /* else each replica runs it */
  struct program_range entries; /* operands: numbers of entries */
  uint32_t begin, close;        /* entries that run once, before the first and after the last thread's end; PROGRAM_NONE: none */
  uint64_t end_codes;           /* bit i: status i */
};
struct program_part {
  uint32_t task; /* PROGRAM_TASK_DRIVER, PROGRAM_TASK_SELF or this task; of a function: of who calls it */
  uint32_t block;
  struct program_range slots;
  uint32_t instr_count; /* of all blocks together */
  uint32_t positions;   /* lifetimes of slots are positions below this */
  uint8_t dataflow;     /* instructions of the outer block run when their needs are met, not in order */
  uint8_t reserved[7];
};
struct program_block {
  struct program_range instrs;
  struct program_range params, results; /* operands: slots */
  struct program_range symbols;         /* operands: symbols that get their values in this block */
};
enum program_storage {
  STORAGE_ARENA,  /* a place in the frame, planned from lifetimes before the step starts */
  STORAGE_TENSOR, /* a counted tensor: fed, received, sent, fetched, from a host call or a region, or of a size known late */
  STORAGE_CONST,
  STORAGE_VARIABLE, /* the memory of a variable since it was read */
  STORAGE_ALIAS,    /* the memory of slot `root` */
  STORAGE_ROW,      /* in the body of a loop: a row, this turn's, of one of its outputs */
};
struct program_slot {
  uint8_t dtype, rank, storage;
  uint8_t any_rank; /* its shape is that of the tensor that it holds */
  uint32_t root;    /* ALIAS: whose memory it is; else the slot itself */
  uint32_t dims;    /* operands: rank size codes */
  uint32_t reserved;
  uint64_t data;        /* CONST: offset into PROGRAM_DATA; VARIABLE: its number */
  uint32_t first, last; /* ARENA: positions of the first and last use */
};
enum program_op {
  INSTR_FEED = 1, /* outputs[0] = feed `number` */
  INSTR_FETCH,    /* fetch `number` = args[0] */
  INSTR_KERNEL,   /* kernel `number`; args: one for each buffer */
  INSTR_ALIAS,    /* outputs[0] over args[0] */
  INSTR_READ,     /* outputs[0] = variable `number` */
  INSTR_ASSIGN,   /* variable `number` = args[0] */
  INSTR_VARIABLE, /* outputs[0] = question `peer` about variable `number` */
  INSTR_HOST,     /* the function named by the text `number` */
  INSTR_BIND,     /* the elements of args become the values of `sizes` */
  INSTR_IF,       /* args: branch, then the blocks' parameters */
  INSTR_WHILE, /* args: loop variables, then `number` arrays whose rows the body takes; the last `peer` of outputs are made of rows; blocks:
                   * condition, body */
  INSTR_SEND,  /* transfer `number` to task `peer` */
  INSTR_RECV,
  INSTR_NOOP,
  INSTR_MERGE, /* args: bool, value of the false side, of the true side: outputs[0] = the one that is there */
};
#define PROGRAM_ARG_VARIABLE UINT32_C(0x80000000) /* an argument: a variable's number, not a slot */
#define PROGRAM_ARG_SCRATCH UINT32_MAX
#define PROGRAM_KERNEL_VARIABLES 16 /* arguments of one kernel that are variables, at most: optimizers take up to five */
#define PROGRAM_GROUP_MAX 8         /* kernels that may run at the same time: INSTR_BESIDE at most so often in a row, less one */
enum program_instr_flag {
  INSTR_LATE = 1,     /* its sizes depend on symbols that are bound while the step runs */
  INSTR_BLOCKS = 2,   /* may wait for other steps */
  INSTR_LOCKS = 4,    /* KERNEL: some of its arguments are variables */
  INSTR_DEFINES = 8,  /* READ: the shape of the value is not fixed: it binds symbols or must agree */
  INSTR_MAKES = 16,   /* KERNEL, VARIABLE: an output is a tensor of its own */
  INSTR_CHANGES = 32, /* updates a variable, or is a host call that others may see */
  INSTR_BESIDE = 64,  /* a kernel that may run at the same time as the next instruction, a kernel, and those that this one may run beside */
  INSTR_FROM_LAST = 128, /* WHILE: the first turn has the last row */
  INSTR_OPTIONAL = 256,  /* READ: the variable may have no value, as long as no loop that takes it turns */
};
struct program_instr {
  uint8_t op, reserved;
  uint16_t flags;
  uint32_t node, tf_op; /* texts, for errors and traces */
  uint32_t place;       /* text, for errors: where in the user's program the node was made; "" when the graph does not say */
  uint32_t number, peer;
  struct program_range args;      /* operands: slots, or PROGRAM_ARG_VARIABLE + variable */
  struct program_range outputs;   /* operands: slots */
  struct program_range sizes;     /* operands: size codes */
  uint32_t sizes_at;              /* KERNEL: where its sizes are in a frame; sizes of all kernels are in one array */
  uint32_t shapes;                /* KERNEL: operands: for each variable among args: mode, rank, its size codes */
  struct program_range blocks;    /* IF, WHILE */
  struct program_range functions; /* HOST: parts that it may run, in the order of its attribute `functions` */
  struct program_range attrs;
  struct program_range release;    /* operands: slots whose last use this is */
  struct program_range guards;     /* operands: slot * 2 + expected bool: unless all hold, the instruction is skipped */
  struct program_range successors; /* operands: instructions of the same block that need this one; dataflow only */
  uint32_t need_count;             /* dataflow: how many must have run before */
  uint32_t kernel_at;              /* KERNEL: its number among the kernels of the part */
};
enum program_variable_mode { PROGRAM_VARIABLE_IN, PROGRAM_VARIABLE_OUT, PROGRAM_VARIABLE_INOUT }; /* in `shapes` */
/* An attribute of a host call: kind as enum program_attr_kind. */
enum program_attr_kind {
  PROGRAM_ATTR_NONE,
  PROGRAM_ATTR_STRING,
  PROGRAM_ATTR_INT,
  PROGRAM_ATTR_FLOAT,
  PROGRAM_ATTR_BOOL,
  PROGRAM_ATTR_TYPE,
  PROGRAM_ATTR_SHAPE,
  PROGRAM_ATTR_TENSOR,
  PROGRAM_ATTR_FUNC,
  PROGRAM_ATTR_LIST,
  PROGRAM_ATTR_PLACEHOLDER,
};
struct program_attr {
  uint32_t name; /* text */
  uint32_t kind;
  int64_t i; /* INT, BOOL, TYPE; SHAPE: rank, or -1 when unknown */
  double f;
  uint64_t offset, size;     /* STRING, FUNC (its name): bytes in PROGRAM_DATA; TENSOR: elements there, count */
  struct program_range list; /* LIST: attrs; SHAPE, TENSOR: dims as size codes (one PROGRAM_WORDS word each) */
  uint32_t dtype, reserved;
};
/* attrs: for each attribute of the NodeDef whose name does not begin with '_' the low halves of two hashes (base/map.h,
 * hash_bytes, each piece seeded with the hash before it, 0 first): of the name, and of the value: its kind (int64_t), then
 * STRING, FUNC (its name): size, bytes; INT, BOOL, TYPE: int64_t; FLOAT: float; SHAPE: rank (-1: unknown), dims; TENSOR: dtype, rank,
 * dims, elements (strings: size, bytes each); LIST: its items like this. A value hash of 0 is not compared. */
struct program_node {
  uint32_t name, op;          /* texts */
  uint64_t input_hash;        /* program_hash_input */
  struct program_range attrs; /* operands, in pairs */
};

static inline const void *program_table(const struct program *program, enum program_table_id id) {
  return (const char *)program + program->tables[id].offset;
}
static inline const char *program_text(const struct program *program, uint32_t text) {
  return (const char *)program_table(program, PROGRAM_TEXTS) + text;
}
static inline const uint32_t *program_operands(const struct program *program, uint32_t first) {
  return (const uint32_t *)program_table(program, PROGRAM_OPERANDS) + first;
}
static inline const int64_t *program_words(const struct program *program, uint32_t first) {
  return (const int64_t *)program_table(program, PROGRAM_WORDS) + first;
}
#define PROGRAM_ACCESSOR(noun, id)                                                                 \
  static inline const struct program_##noun *program_##noun(const struct program *p, uint32_t i) { \
    return (const struct program_##noun *)program_table(p, id) + i;                                \
  }
PROGRAM_ACCESSOR(task, PROGRAM_TASKS)
PROGRAM_ACCESSOR(variable, PROGRAM_VARIABLES)
PROGRAM_ACCESSOR(entry, PROGRAM_ENTRIES)
PROGRAM_ACCESSOR(part, PROGRAM_PARTS)
PROGRAM_ACCESSOR(block, PROGRAM_BLOCKS)
PROGRAM_ACCESSOR(instr, PROGRAM_INSTRS)
PROGRAM_ACCESSOR(slot, PROGRAM_SLOTS)
PROGRAM_ACCESSOR(port, PROGRAM_PORTS)
PROGRAM_ACCESSOR(attr, PROGRAM_ATTRS)
PROGRAM_ACCESSOR(runner, PROGRAM_RUNNERS)
PROGRAM_ACCESSOR(node, PROGRAM_NODES)
#undef PROGRAM_ACCESSOR

/* The hash of a node's inputs: data inputs in order, then controls in order with port UINT32_MAX. Start with seed 0. */
static inline uint64_t program_hash_input(uint64_t seed, const char *node, uint32_t port) {
  for (const char *p = node; *p; p++)
    seed = (seed ^ (unsigned char)*p) * UINT64_C(0x100000001b3);
  return (seed ^ 0xff ^ ((uint64_t)port << 8)) * UINT64_C(0x100000001b3) + 1;
}

#endif
