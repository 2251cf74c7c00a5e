/* seam.h: the functions of libc through which the runtime touches the world, as the simulator has them.
 *
 * system.txt lists them; in the library that is simulated each call of NAME is one of simulated_NAME. They behave as the manual says, as
 * far as the runtime uses them, and give way to other threads by chance.
 */
#ifndef TFC_TESTS_SIMULATOR_SEAM_H
#define TFC_TESTS_SIMULATOR_SEAM_H

#include <dirent.h>
#include <netdb.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

/* memory.c */
void *simulated_malloc(size_t size);
void *simulated_calloc(size_t count, size_t size);
void *simulated_aligned_alloc(size_t align, size_t size);
char *simulated_strdup(const char *text);
char *simulated_strndup(const char *text, size_t size);
void simulated_free(void *at);
void *simulated_realloc(void *at, size_t size);
void *simulated_reallocarray(void *at, size_t count, size_t size);
int simulated_asprintf(char **out, const char *format, ...);

/* seam_thread.c */
int simulated_pthread_create(pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *), void *argument);
int simulated_pthread_join(pthread_t thread, void **result);
int simulated_pthread_detach(pthread_t thread);
pthread_t simulated_pthread_self(void);
int simulated_pthread_attr_init(pthread_attr_t *attr);
int simulated_pthread_attr_destroy(pthread_attr_t *attr);
int simulated_pthread_attr_setdetachstate(pthread_attr_t *attr, int state);
int simulated_pthread_attr_setaffinity_np(pthread_attr_t *attr, size_t size, const cpu_set_t *set);
int simulated_pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *set);
int simulated_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int simulated_pthread_mutex_destroy(pthread_mutex_t *mutex);
int simulated_pthread_mutex_lock(pthread_mutex_t *mutex);
int simulated_pthread_mutex_trylock(pthread_mutex_t *mutex);
int simulated_pthread_mutex_unlock(pthread_mutex_t *mutex);
int simulated_pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attr);
int simulated_pthread_rwlock_destroy(pthread_rwlock_t *lock);
int simulated_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int simulated_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int simulated_pthread_rwlock_unlock(pthread_rwlock_t *lock);
int simulated_pthread_condattr_init(pthread_condattr_t *attr);
int simulated_pthread_condattr_destroy(pthread_condattr_t *attr);
int simulated_pthread_condattr_setclock(pthread_condattr_t *attr, clockid_t clock);
int simulated_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr);
int simulated_pthread_cond_destroy(pthread_cond_t *cond);
int simulated_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int simulated_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until);
int simulated_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until);
int simulated_pthread_cond_signal(pthread_cond_t *cond);
int simulated_pthread_cond_broadcast(pthread_cond_t *cond);
int simulated_pthread_once(pthread_once_t *once, void (*run)(void));
int simulated_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
long simulated_syscall(long number, ...);
int simulated_sched_yield(void);
int simulated_sched_getcpu(void);
int simulated_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);

/* seam_process.c */
int simulated_clock_gettime(clockid_t clock, struct timespec *out);
int simulated_nanosleep(const struct timespec *time, struct timespec *rest);
int simulated_usleep(useconds_t time);
ssize_t simulated_getrandom(void *out, size_t size, unsigned flags);
pid_t simulated_getpid(void);
pid_t simulated_gettid(void);
uid_t simulated_geteuid(void);
int simulated_kill(pid_t pid, int number);
int simulated_sigwait(const sigset_t *set, int *number);
void (*simulated_signal(int number, void (*handler)(int)))(int);
char *simulated_getenv(const char *name);
int simulated_gethostname(char *out, size_t size);
void simulated_exit(int code) __attribute__((noreturn));
void simulated__exit(int code) __attribute__((noreturn));

/* seam_socket.c */
int simulated_socket(int family, int kind, int protocol);
int simulated_bind(int fd, const struct sockaddr *address, socklen_t size);
int simulated_listen(int fd, int backlog);
int simulated_connect(int fd, const struct sockaddr *address, socklen_t size);
int simulated_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
ssize_t simulated_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t simulated_send(int fd, const void *data, size_t size, int flags);
ssize_t simulated_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t simulated_recv(int fd, void *out, size_t size, int flags);
int simulated_shutdown(int fd, int how);
int simulated_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int simulated_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int simulated_getsockname(int fd, struct sockaddr *address, socklen_t *size);
int simulated_getpeername(int fd, struct sockaddr *address, socklen_t *size);
int simulated_ioctl(int fd, unsigned long request, ...);
int simulated_epoll_create1(int flags);
int simulated_epoll_ctl(int epoll, int what, int fd, struct epoll_event *event);
int simulated_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms);
int simulated_eventfd(unsigned count, int flags);
int simulated_timerfd_create(int clock, int flags);
int simulated_timerfd_settime(int fd, int flags, const struct itimerspec *due, struct itimerspec *old);
int simulated_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **out);
void simulated_freeaddrinfo(struct addrinfo *list);

/* seam_file.c */
int simulated_open(const char *path, int flags, ...);
int simulated_openat(int folder, const char *path, int flags, ...);
int simulated_close(int fd);
ssize_t simulated_read(int fd, void *out, size_t size);
ssize_t simulated_write(int fd, const void *data, size_t size);
ssize_t simulated_pread(int fd, void *out, size_t size, off_t at);
ssize_t simulated_pwrite(int fd, const void *data, size_t size, off_t at);
off_t simulated_lseek(int fd, off_t at, int from);
int simulated_fsync(int fd);
int simulated_fdatasync(int fd);
int simulated_ftruncate(int fd, off_t size);
int simulated_fcntl(int fd, int what, ...);
int simulated_fstat(int fd, struct stat *out);
int simulated_stat(const char *path, struct stat *out);
int simulated_lstat(const char *path, struct stat *out);
int simulated_access(const char *path, int mode);
int simulated_flock(int fd, int how);
int simulated_unlink(const char *path);
int simulated_unlinkat(int folder, const char *path, int flags);
int simulated_rename(const char *from, const char *to);
int simulated_mkdir(const char *path, mode_t mode);
int simulated_rmdir(const char *path);
char *simulated_realpath(const char *path, char *out);
DIR *simulated_opendir(const char *path);
struct dirent *simulated_readdir(DIR *folder);
int simulated_closedir(DIR *folder);
int simulated_dirfd(DIR *folder);
void *simulated_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
int simulated_munmap(void *at, size_t size);
int simulated_madvise(void *at, size_t size, int advice);

/* seam_stream.c */
extern FILE *simulated_stdout, *simulated_stderr;
FILE *simulated_fopen(const char *path, const char *mode);
FILE *simulated_fdopen(int fd, const char *mode);
FILE *simulated_tmpfile(void);
int simulated_fileno(FILE *file);
int simulated_printf(const char *format, ...);
int simulated_puts(const char *text);
int simulated_putchar(int byte);

#endif
