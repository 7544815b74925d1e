/** Keeps the end of a page in view while it grows, until the reader scrolls up. */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

/** Pixels above the end that still count as the end. */
const nearPx = 60;

/** Scrolls to the end of the page whenever `grown` changes. A change of `begun` follows again. */
export function useEndInView(grown: unknown, begun: unknown): void {
  const state = useRef({ isFollowing: true, top: 0 });
  useEffect(() => {
    const onScroll = (): void => {
      const { scrollHeight } = document.documentElement;
      if (innerHeight + scrollY >= scrollHeight - nearPx) state.current.isFollowing = true;
      else if (scrollY < state.current.top) state.current.isFollowing = false;
      state.current.top = scrollY;
    };
    addEventListener("scroll", onScroll);
    return () => removeEventListener("scroll", onScroll);
  }, []);
  useLayoutEffect(() => {
    state.current.isFollowing = true;
  }, [begun]);
  useLayoutEffect(() => {
    if (state.current.isFollowing) scrollTo(0, document.documentElement.scrollHeight);
  }, [grown]);
}
