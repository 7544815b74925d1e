import { describe, expect, test } from "vitest";
import { linearAxis, logAxis } from "../../bench/report/axis.ts";
import { drawBars } from "../../bench/report/draw-bars.ts";
import { drawGrowth } from "../../bench/report/draw-growth.ts";
import { drawRanges } from "../../bench/report/draw-ranges.ts";
import { figureText, spreadText } from "../../bench/report/figure-text.ts";

const pixels = { from: 0, to: 100 };
const one = { median: 10, min: 8, max: 15 };

describe("an axis", () => {
  test("is marked at round numbers, and nothing lies beyond it", () => {
    expect(linearAxis([0.3, 36.1], pixels).ticks.map(({ text }) => text)).toEqual(["0", "10", "20", "30", "40"]);
    expect(linearAxis([1_701], pixels).ticks.map(({ text }) => text)).toEqual(["0", "500", "1,000", "1,500", "2,000"]);
    expect(linearAxis([0.3], pixels).ticks.map(({ text }) => text)).toEqual(["0", "0.1", "0.2", "0.3"]);
    expect(linearAxis([40], pixels).at(40)).toBe(100);
    expect(logAxis([3, 70], pixels).ticks.map(({ text }) => text)).toEqual(["2", "5", "10", "20", "50", "100"]);
  });

  test("that is logarithmic gives the same room to the same factor", () => {
    const axis = logAxis([1, 100], pixels);
    expect([1, 10, 100].map((value) => Math.round(axis.at(value)))).toEqual([0, 50, 100]);
    expect(axis.at(0)).toBe(0);
  });

  test("of nothing, or of one value, is an axis still", () => {
    for (const axis of [linearAxis([], pixels), linearAxis([0], pixels), logAxis([], pixels), logAxis([5], pixels)]) {
      expect(axis.ticks.length).toBeGreaterThan(1);
      expect(Number.isFinite(axis.at(5))).toBe(true);
    }
  });
});

test("numbers have about three digits", () => {
  expect([0, 0.048, 0.99612, 1, 1.4849, 75.21, 1_632.4].map(figureText)).toEqual([
    "0",
    "0.048",
    "0.996",
    "1.00",
    "1.48",
    "75.2",
    "1,632",
  ]);
  expect(spreadText(one)).toBe("10.0 (8.00–15.0)");
  expect(spreadText({ median: 1, min: 1, max: 1.001 })).toBe("1.00");
});

describe("a plot", () => {
  const bars = drawBars({
    title: "CPU <per> request & more",
    xLabel: "µs",
    bars: [
      {
        name: 'a"b',
        parts: [
          { name: "gateway", value: 4 },
          { name: "nats", value: 6 },
        ],
        spread: one,
      },
    ],
    colourOf: (part) => (part === "nats" ? "#00ff00" : "#0000ff"),
  });

  test("has its names as text, whatever they are", () => {
    expect(bars).toContain("CPU &lt;per&gt; request &amp; more");
    expect(bars).toContain("a&quot;b");
    expect(bars).not.toContain("<per>");
  });

  test("stacks the parts of a bar, each as long as its share", () => {
    const boxes = [...bars.matchAll(/<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="18" fill="(#\w+)"/g)];
    const [first, second] = boxes.map(([, x, width]) => ({ x: Number(x), width: Number(width) }));
    expect(boxes.map(([, , , fill]) => fill)).toEqual(["#0000ff", "#00ff00"]);
    expect(second?.x).toBeCloseTo((first?.x ?? 0) + (first?.width ?? 0), 0);
    expect((second?.width ?? 0) / (first?.width ?? 1)).toBeCloseTo(1.5, 1);
  });

  test("has a panel of its own, a description and no number that is none, also where nothing was measured", () => {
    const growth = { name: "g", title: "growth", xLabel: "x", yLabel: "y", counts: "all" } as const;
    const points = [{ x: 1, y: 0, min: 0, max: 0 }];
    const plots = [
      bars,
      drawBars({ title: "none", xLabel: "µs", bars: [], colourOf: () => "#000000" }),
      drawRanges({ title: "none", xLabel: "ms", groups: [] }),
      drawRanges({ title: "one", xLabel: "ms", groups: [{ title: "g", rows: [{ name: "a", p50: one, p99: one }] }] }),
      drawGrowth({ ...growth, series: [] }),
      drawGrowth({ ...growth, logX: true, logY: true, series: [{ name: "s", points }] }),
    ];
    for (const svg of plots) {
      expect(svg).toContain('fill="#ffffff"');
      expect(svg).toMatch(/<title>.+<\/title>\n<desc>/);
      expect(svg).not.toMatch(/NaN|Infinity|undefined/);
    }
  });
});
