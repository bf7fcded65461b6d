// One round of redsync over go-redis, or of rueidislock on one server: K goroutines in one process,
// each acquires and releases a resource of its own without pause. What to do comes as JSON in the
// only argument, what was measured leaves as one line of JSON. Without an argument: the versions of
// the modules that it was built with. bench/peers/run takes its program from --go-worker. It needs
// Go 1.22.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/go-redsync/redsync/v4"
	pooled "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

var asked struct {
	Masters  []string
	InFlight int `json:"in_flight"`
	Seconds  float64
	WarmUp   float64 `json:"warm_up"`
	Prefix   string
	Client   string
	FailFast bool `json:"fail_fast"`
}

type seen struct {
	acquireUs    []float64
	pairs        int
	failures     int
	firstFailure string
}

// A lock with its client's defaults, for one loop; it is released by what an acquire returns.
type acquire func() (release func() error, err error)

func redsyncLocks() func(name string) acquire {
	var pools []pooled.Pool
	for _, master := range asked.Masters {
		pools = append(pools, goredis.NewPool(redis.NewClient(&redis.Options{Addr: master})))
	}
	locker := redsync.New(pools...)
	return func(name string) acquire {
		mutex := locker.NewMutex(name, redsync.WithFailFast(asked.FailFast))
		release := func() error {
			_, err := mutex.Unlock()
			return err
		}
		return func() (func() error, error) { return release, mutex.TryLock() }
	}
}

func rueidislockLocks() func(name string) acquire {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: asked.Masters}})
	check(err)
	return func(name string) acquire {
		return func() (func() error, error) {
			_, cancel, err := locker.TryWithContext(context.Background(), name)
			return func() error { cancel(); return nil }, err
		}
	}
}

func (here *seen) loop(lock acquire, until time.Time) {
	for time.Now().Before(until) {
		started := time.Now()
		release, err := lock()
		took := time.Since(started)
		if err == nil {
			here.acquireUs = append(here.acquireUs, float64(took.Nanoseconds())/1e3)
			err = release()
		}
		if err == nil {
			here.pairs++
			continue
		}
		here.failures++
		if here.firstFailure == "" {
			here.firstFailure = err.Error()
		}
	}
}

func cpuUs() float64 {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e3
}

// What was seen, the seconds it took and the processor's microseconds.
func run(locks func(name string) acquire, seconds float64) (total seen, elapsed, cpu float64) {
	each := make([]seen, asked.InFlight)
	var running sync.WaitGroup
	used, started := cpuUs(), time.Now()
	until := started.Add(time.Duration(seconds * 1e9))
	for i := range each {
		running.Add(1)
		go func() {
			defer running.Done()
			each[i].loop(locks(fmt.Sprint(asked.Prefix, i)), until)
		}()
	}
	running.Wait()
	elapsed, cpu = time.Since(started).Seconds(), cpuUs()-used
	for _, one := range each {
		total.acquireUs = append(total.acquireUs, one.acquireUs...)
		total.pairs += one.pairs
		total.failures += one.failures
		if total.firstFailure == "" {
			total.firstFailure = one.firstFailure
		}
	}
	return total, elapsed, cpu
}

// The same rank as in quorum_bench.
func percentile(sorted []float64, rank float64) any {
	if len(sorted) == 0 {
		return nil
	}
	return sorted[max(int(math.Ceil(rank*float64(len(sorted)))), 1)-1]
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func printVersions() {
	versions := map[string]string{"go": runtime.Version()}
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, module := range built.Deps {
			versions[module.Path] = module.Version
		}
	}
	check(json.NewEncoder(os.Stdout).Encode(versions))
}

func main() {
	if len(os.Args) == 1 {
		printVersions()
		return
	}
	check(json.Unmarshal([]byte(os.Args[1]), &asked))
	clients := map[string]func() func(name string) acquire{
		"redsync": redsyncLocks, "rueidislock": rueidislockLocks}
	locks := clients[asked.Client]()
	warm, _, _ := run(locks, asked.WarmUp)
	found, elapsed, cpu := run(locks, asked.Seconds)
	slices.Sort(found.acquireUs)
	if found.firstFailure == "" {
		found.firstFailure = warm.firstFailure
	}
	var cpuPerPair any
	if found.pairs != 0 {
		cpuPerPair = cpu / float64(found.pairs)
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"pairs":                  found.pairs,
		"failures":               found.failures + warm.failures,
		"first_failure":          found.firstFailure,
		"acquire_p50_us":         percentile(found.acquireUs, 0.5),
		"acquire_p99_us":         percentile(found.acquireUs, 0.99),
		"pairs_per_second":       float64(found.pairs) / elapsed,
		"client_cpu_us_per_pair": cpuPerPair,
	}))
}
