/* fail_disk.c - preloaded into the program by tests/cli/tools/failing-disk: the disk under the arrays
 * beyond memory fails as FAIL_DISK says.
 *
 *     small   every folder has room for 100000 bytes, and takes what is written all the same
 *     full    there is no room when a file asks for its place
 *     page    no place is made, so that the first page that is touched cannot be had
 *     write   a file is told, once, that one of its pages could not be written
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

static bool is(const char *how)
{
    const char *const asked = getenv("FAIL_DISK");
    return asked && strcmp(asked, how) == 0;
}

PUBLIC int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    if (is("full")) {
        return ENOSPC;
    }
    if (is("page")) {
        return 0;
    }
    return fallocate(fd, 0, offset, bytes) == 0 ? 0 : errno;
}

PUBLIC int sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags)
{
    static bool told;
    const bool fails = is("write") && !told;
    (void)fd;
    (void)offset;
    (void)bytes;
    (void)flags;
    told = told || fails;
    errno = fails ? EIO : 0;
    return fails ? -1 : 0;
}

PUBLIC int statvfs(const char *path, struct statvfs *v)
{
    const fsblkcnt_t all = (fsblkcnt_t)1 << 40;
    *v = (struct statvfs){.f_frsize = 1, .f_blocks = all, .f_bavail = is("small") ? 100000 : all};
    return access(path, F_OK);
}
