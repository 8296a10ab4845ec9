/* Answers the three products that MLX imports from its slow reference BLAS with OpenBLAS's, whose wheel prefixes its
 * names. One row times a matrix, the product of plain decoding, goes to gemv, which reads the matrix once. */

#define ROW_MAJOR 101
#define NO_TRANS 111
#define TRANS 112

void scipy_cblas_sgemm(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *, int);
void scipy_cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
void scipy_cblas_cgemm(int, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *, int);
void scipy_cblas_sgemv(int, int, int, int, float, const float *, int, const float *, int, float, float *, int);

void cblas_sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                 int ldb, float beta, float *c, int ldc) {
    if (order == ROW_MAJOR && m == 1) {
        int step = ta == NO_TRANS ? 1 : lda;
        if (tb == NO_TRANS)
            scipy_cblas_sgemv(ROW_MAJOR, TRANS, k, n, alpha, b, ldb, a, step, beta, c, 1);
        else
            scipy_cblas_sgemv(ROW_MAJOR, NO_TRANS, n, k, alpha, b, ldb, a, step, beta, c, 1);
        return;
    }
    scipy_cblas_sgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void cblas_dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc) {
    scipy_cblas_dgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

void cblas_cgemm(int order, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda,
                 const void *b, int ldb, const void *beta, void *c, int ldc) {
    scipy_cblas_cgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
