import { readdirSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Exposition } from "./exposition.ts";

/** Sampling interval of the event loop's delay. Each sample wakes even an idle process. */
const sampleEveryMs = 50;
const quantiles = [0.5, 0.9, 0.99, 1];
const openFilesAt = "/proc/self/fd";

/** Adds the metrics of this process, under the names that other programs use for them. */
export function measureProcess(exposition: Exposition): { stop(): void } {
  const delay = monitorEventLoopDelay({ resolution: sampleEveryMs });
  delay.enable();
  exposition.gauge(
    {
      name: "trunkline_event_loop_delay_seconds",
      help: "How late this process came to what was due, since the last scrape.",
      labels: ["quantile"],
    },
    (gauge) => {
      for (const quantile of quantiles) {
        const late = delay.count === 0 ? 0 : delay.percentile(quantile * 100) / 1e9 - sampleEveryMs / 1_000;
        gauge.set({ quantile }, Math.max(0, late));
      }
      delay.reset();
    },
  );
  exposition.readCounter({ name: "process_cpu_seconds_total", help: "Processor time that this process took." }, () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  const inBytes = (name: string, help: string, of: (usage: NodeJS.MemoryUsage) => number): void => {
    exposition.gauge({ name, help }, (gauge) => gauge.set(of(process.memoryUsage())));
  };
  inBytes("process_resident_memory_bytes", "Memory of this process.", ({ rss }) => rss);
  inBytes("nodejs_heap_size_used_bytes", "Memory that its objects take.", ({ heapUsed }) => heapUsed);
  inBytes("nodejs_external_memory_bytes", "Memory that its buffers take.", ({ external }) => external);
  exposition.gauge(
    { name: "process_start_time_seconds", help: "When this process began, in seconds since 1970." },
    (gauge) => gauge.set(performance.timeOrigin / 1_000),
  );
  exposition.gauge(
    { name: "process_open_fds", help: "Its open files and connections, where that can be told." },
    (gauge) => {
      const open = countOpenFiles();
      if (open !== undefined) gauge.set(open);
    },
  );
  return { stop: () => void delay.disable() };
}

function countOpenFiles(): number | undefined {
  try {
    return readdirSync(openFilesAt).length;
  } catch {
    return undefined;
  }
}
