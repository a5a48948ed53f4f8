/* Stands between a process and libc, preloaded: counts the calls that touch files below a folder, and at a call of
 * choice kills the process, returns an error, or writes only a part. It can also log all that reaches the disk.
 *
 * The control block lies in memory that forked children share: the parent arms, the child is hit, the parent reads.
 * shim.py has the same layout. Writes through a mapping (SQLite's -shm) are not seen: no one relies on them after a
 * crash.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, TRUNCATE = 4, RENAME = 8, UNLINK = 16, OPEN = 32, READ = 64, MAP = 128, CREATE = 256 };
enum { COUNT, KILL_BEFORE, KILL_AFTER, KILL_MIDWAY, FAIL, SHORTEN };
enum { LOG_WRITE = 'W', LOG_SYNC = 'S', LOG_TRUNCATE = 'T', LOG_RENAME = 'R', LOG_UNLINK = 'U', LOG_CREATE = 'C', LOG_LINK = 'L', LOG_MARK = 'M' };

struct control {
    char folder[512];
    uint32_t armed, kinds, action;
    int32_t error;
    uint64_t first, last; /* the calls that are hit, counted from 0 */
    uint64_t calls, hits;
    uint32_t hit_kind, logging;
    char hit_path[512];
    uint64_t used, size, overflow;
    int64_t acknowledged, scratch;
};

struct entry { /* followed by `length` bytes, and padded to 8 */
    uint64_t inode, offset, length;
    uint32_t kind, unused;
};

static struct control *control;
static char *journal;
static uint32_t lock;

#define REAL(name) ({ static typeof(&name) real; if (!real) real = (typeof(&name))dlsym(RTLD_NEXT, #name); real; })

__attribute__((constructor)) static void begin(void) {
    void *page = mmap(0, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) control = page;
}

struct control *shim_control(void) { return control; }

/* Room for a log of `size` bytes, shared with children that are forked later; its address. */
char *shim_log(uint64_t size) {
    void *room = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) return 0;
    control->size = size;
    return journal = room;
}

static void note(uint32_t kind, uint64_t inode, uint64_t offset, const void *data, uint64_t length) {
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE)) {}
    uint64_t end = control->used + sizeof(struct entry) + ((length + 7) & ~7ULL);
    if (end > control->size) control->overflow++;
    else {
        struct entry *at = (struct entry *)(journal + control->used);
        *at = (struct entry){inode, offset, length, kind, 0};
        if (length) memcpy(at + 1, data, length);
        control->used = end;
    }
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

void shim_mark(uint64_t number) { if (control->logging) note(LOG_MARK, number, 0, 0, 0); }

static int below(const char *path) {
    size_t length = strlen(control->folder);
    return length && !strncmp(path, control->folder, length) && path[length] == '/';
}

static int active(void) { return control && (control->armed || control->logging); }

/* The path of an open file where it is below the folder. */
static int ours(int fd, char *path) {
    char link[64];
    int saved = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, 511);
    errno = saved;
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

/* An absolute path from one that is relative to a folder's descriptor, without resolving links. */
static int absolute(int fd, const char *given, char *path) {
    int saved = errno, found = 0;
    char base[512] = "";
    if (given[0] == '/') found = snprintf(path, 512, "%s", given) < 512;
    else if (fd == AT_FDCWD) found = getcwd(base, sizeof base) && snprintf(path, 512, "%s/%s", base, given) < 512;
    else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, base, 511);
        found = length > 0 && snprintf(path, 512, "%s/%s", base, given) < 512;
    }
    errno = saved;
    return found && below(path);
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* What to do at this call: COUNT for nothing. A process that is to die before the call does so here. */
static uint32_t meet(uint32_t kind, const char *path) {
    if (!control->armed || !(control->kinds & kind)) return COUNT;
    uint64_t number = __atomic_fetch_add(&control->calls, 1, __ATOMIC_SEQ_CST);
    if (number < control->first || number > control->last) return COUNT;
    if (control->action == COUNT || (control->action == SHORTEN && kind != WRITE)) return COUNT;
    __atomic_fetch_add(&control->hits, 1, __ATOMIC_SEQ_CST);
    control->hit_kind = kind;
    strncpy(control->hit_path, path, sizeof control->hit_path - 1);
    if (control->action == KILL_BEFORE || (control->action == KILL_MIDWAY && kind != WRITE)) die();
    if (control->action == FAIL) errno = control->error;
    return control->action;
}

static uint64_t inode_of(int fd) {
    struct stat held;
    int saved = errno, failed = fstat(fd, &held);
    errno = saved;
    return failed ? 0 : held.st_ino;
}

static ssize_t write_at(int fd, const void *data, size_t size, off_t offset, int positioned) {
    char path[512];
    if (!active() || !ours(fd, path))
        return positioned ? REAL(pwrite64)(fd, data, size, offset) : REAL(write)(fd, data, size);
    uint32_t action = meet(WRITE, path);
    if (action == FAIL) return -1;
    if (action == SHORTEN || action == KILL_MIDWAY) size = size > 1 ? size / 2 : size;
    if (control->logging && !positioned) offset = lseek(fd, 0, SEEK_CUR);
    ssize_t written = positioned ? REAL(pwrite64)(fd, data, size, offset) : REAL(write)(fd, data, size);
    if (control->logging && written > 0) note(LOG_WRITE, inode_of(fd), offset, data, written);
    if (action == KILL_AFTER || action == KILL_MIDWAY) die();
    return written;
}

ssize_t write(int fd, const void *data, size_t size) { return write_at(fd, data, size, 0, 0); }
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) { return write_at(fd, data, size, offset, 1); }
ssize_t pwrite64(int fd, const void *data, size_t size, off_t offset) { return write_at(fd, data, size, offset, 1); }

/* Where these are watched they write their first part, as they may. */
ssize_t writev(int fd, const struct iovec *parts, int count) {
    char path[512];
    if (!active() || !count || !ours(fd, path)) return REAL(writev)(fd, parts, count);
    return write_at(fd, parts[0].iov_base, parts[0].iov_len, 0, 0);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    char path[512];
    if (!active() || !count || !ours(fd, path)) return REAL(pwritev)(fd, parts, count, offset);
    return write_at(fd, parts[0].iov_base, parts[0].iov_len, offset, 1);
}

#define READER(name, parameters, arguments)                              \
    ssize_t name parameters {                                            \
        char path[512];                                                  \
        if (active() && control->kinds & READ && ours(fd, path)) {       \
            uint32_t action = meet(READ, path);                          \
            if (action == FAIL) return -1;                               \
            ssize_t got = REAL(name) arguments;                          \
            if (action == KILL_AFTER) die();                             \
            return got;                                                  \
        }                                                                \
        return REAL(name) arguments;                                     \
    }
READER(read, (int fd, void *data, size_t size), (fd, data, size))
READER(pread, (int fd, void *data, size_t size, off_t offset), (fd, data, size, offset))
READER(pread64, (int fd, void *data, size_t size, off_t offset), (fd, data, size, offset))

#define SYNCER(name)                                                                   \
    int name(int fd) {                                                                 \
        char path[512];                                                                \
        struct stat held;                                                              \
        if (!active() || !ours(fd, path) || fstat(fd, &held)) return REAL(name)(fd);   \
        uint32_t action = meet(SYNC, path);                                            \
        if (action == FAIL) return -1;                                                 \
        /* What is logged is replayed: to sync it as well would only take time. */     \
        int failed = control->logging ? 0 : REAL(name)(fd);                            \
        int folder = S_ISDIR(held.st_mode);                                            \
        if (control->logging) note(LOG_SYNC, held.st_ino, folder, path, strlen(path)); \
        if (action == KILL_AFTER) die();                                               \
        return failed;                                                                 \
    }
SYNCER(fsync)
SYNCER(fdatasync)

static int truncate_to(int fd, off_t size) {
    char path[512];
    if (!active() || !ours(fd, path)) return REAL(ftruncate64)(fd, size);
    uint32_t action = meet(TRUNCATE, path);
    if (action == FAIL) return -1;
    int failed = REAL(ftruncate64)(fd, size);
    if (control->logging && !failed) note(LOG_TRUNCATE, inode_of(fd), size, 0, 0);
    if (action == KILL_AFTER) die();
    return failed;
}

int ftruncate(int fd, off_t size) { return truncate_to(fd, size); }
int ftruncate64(int fd, off_t size) { return truncate_to(fd, size); }

static void note_two(uint32_t kind, const char *path, const char *target) {
    char both[1024];
    size_t first = strlen(path) + 1, second = strlen(target);
    memcpy(both, path, first);
    memcpy(both + first, target, second);
    note(kind, 0, 0, both, first + second);
}

static int move(int from_fd, const char *from, int to_fd, const char *to, unsigned flags) {
    char path[512], target[512];
    if (!active() || !absolute(from_fd, from, path) || !absolute(to_fd, to, target))
        return flags ? REAL(renameat2)(from_fd, from, to_fd, to, flags) : REAL(renameat)(from_fd, from, to_fd, to);
    uint32_t action = meet(RENAME, target);
    if (action == FAIL) return -1;
    int failed = flags ? REAL(renameat2)(from_fd, from, to_fd, to, flags) : REAL(renameat)(from_fd, from, to_fd, to);
    if (control->logging && !failed) note_two(LOG_RENAME, path, target);
    if (action == KILL_AFTER) die();
    return failed;
}

int rename(const char *from, const char *to) { return move(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char *from, int b, const char *to) { return move(a, from, b, to, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { return move(a, from, b, to, flags); }

static int tie(int from_fd, const char *from, int to_fd, const char *to, int flags) {
    char path[512], target[512];
    if (!active() || !absolute(from_fd, from, path) || !absolute(to_fd, to, target))
        return REAL(linkat)(from_fd, from, to_fd, to, flags);
    uint32_t action = meet(RENAME, target);
    if (action == FAIL) return -1;
    int failed = REAL(linkat)(from_fd, from, to_fd, to, flags);
    if (control->logging && !failed) note_two(LOG_LINK, path, target);
    if (action == KILL_AFTER) die();
    return failed;
}

int link(const char *from, const char *to) { return tie(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int a, const char *from, int b, const char *to, int flags) { return tie(a, from, b, to, flags); }

static int drop(int fd, const char *given, int flags) {
    char path[512];
    if (!active() || flags || !absolute(fd, given, path)) return REAL(unlinkat)(fd, given, flags);
    uint32_t action = meet(UNLINK, path);
    if (action == FAIL) return -1;
    int failed = REAL(unlinkat)(fd, given, flags);
    if (control->logging && !failed) note(LOG_UNLINK, 0, 0, path, strlen(path));
    if (action == KILL_AFTER) die();
    return failed;
}

int unlink(const char *path) { return drop(AT_FDCWD, path, 0); }
int unlinkat(int fd, const char *path, int flags) { return drop(fd, path, flags); }

static int open_at(int fd, const char *given, int flags, mode_t mode) {
    char path[512];
    if (!active() || !absolute(fd, given, path)) return REAL(openat64)(fd, given, flags, mode);
    int saved = errno, made = flags & O_CREAT && faccessat(fd, given, F_OK, 0);
    errno = saved;
    uint32_t action = meet(made ? OPEN | CREATE : OPEN, path);
    if (action == FAIL) return -1;
    int opened = REAL(openat64)(fd, given, flags, mode);
    if (control->logging && opened >= 0 && !(flags & O_DIRECTORY)) {
        if (made) note(LOG_CREATE, inode_of(opened), 0, path, strlen(path));
        else if (flags & O_TRUNC) note(LOG_TRUNCATE, inode_of(opened), 0, 0, 0);
    }
    if (action == KILL_AFTER) die();
    return opened;
}

#define OPENER(name, parameters, fd)                        \
    int name parameters {                                   \
        mode_t mode = 0;                                    \
        if (flags & (O_CREAT | O_TMPFILE)) {                \
            va_list more;                                   \
            va_start(more, flags);                          \
            mode = va_arg(more, mode_t);                    \
            va_end(more);                                   \
        }                                                   \
        return open_at(fd, path, flags, mode);              \
    }
OPENER(open, (const char *path, int flags, ...), AT_FDCWD)
OPENER(open64, (const char *path, int flags, ...), AT_FDCWD)
OPENER(openat, (int folder, const char *path, int flags, ...), folder)
OPENER(openat64, (int folder, const char *path, int flags, ...), folder)

static void *map(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    char path[512];
    if (fd >= 0 && active() && control->kinds & MAP && ours(fd, path) && meet(MAP, path) == FAIL) return MAP_FAILED;
    return REAL(mmap64)(at, size, protection, flags, fd, offset);
}

void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    return map(at, size, protection, flags, fd, offset);
}
void *mmap64(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    return map(at, size, protection, flags, fd, offset);
}
