/** About so many of the latest points count. */
const pointsKept = 30;

/**
 * A line through measured points, of which the latest count most. It takes the rise that is usual elsewhere as a point of
 * its own, so that few points, or points that lie close together, do not make a wild line.
 */
export class LineFit {
  #weight = 0;
  #meanX = 0;
  #meanY = 0;
  #spreadX = 0;
  #spreadXY = 0;

  /** The number of points, of which older ones count less than one. */
  get weight(): number {
    return this.#weight;
  }

  get meanX(): number {
    return this.#meanX;
  }

  get meanY(): number {
    return this.#meanY;
  }

  add(x: number, y: number): void {
    const fading = 1 - 1 / pointsKept;
    const before = this.#weight * fading;
    this.#weight = before + 1;
    const [dx, dy] = [x - this.#meanX, y - this.#meanY];
    this.#meanX += dx / this.#weight;
    this.#meanY += dy / this.#weight;
    const share = before / this.#weight;
    this.#spreadX = this.#spreadX * fading + share * dx * dx;
    this.#spreadXY = this.#spreadXY * fading + share * dx * dy;
  }

  /** The rise of y for each unit of x, never negative. */
  rise(usual: number): number {
    const doubt = this.#meanX * this.#meanX;
    const spread = this.#spreadX + doubt;
    return spread === 0 ? usual : Math.max(0, (this.#spreadXY + doubt * usual) / spread);
  }

  at(x: number, usual: number): number {
    return Math.max(0, this.#meanY + this.rise(usual) * (x - this.#meanX));
  }
}
