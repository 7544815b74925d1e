/** The part of postject that is used here; the package has no types of its own. */
declare module "postject" {
  export function inject(
    file: string,
    resourceName: string,
    resource: Buffer,
    options: { readonly sentinelFuse: string; readonly machoSegmentName?: string },
  ): Promise<void>;
}
